import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulate } from './simulate.ts'

test('a seed is the same run each time', async () => {
  for (const seed of [1, 2, 3]) {
    const first = await simulate(seed)
    const second = await simulate(seed)
    assert.ok(first.history.length > 0)
    assert.equal(second.digest, first.digest)
  }
})
