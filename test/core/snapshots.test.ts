import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newGroup } from '../../core/group/copies.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import { createSnapshots } from '../../core/snapshots.ts'

test('a group that was read so often as it may be is read again when the window is over', async () => {
  let nowMs = 0
  let version = 0
  const slept: number[] = []
  const clock: Clock = {
    now: () => nowMs,
    monotonic: () => nowMs,
    async sleep(ms) {
      slept.push(ms)
      assert.ok(slept.length < 5, 'waits over and over')
      nowMs += Math.max(0, ms)
    },
  }
  const readGroup = async () => {
    const group = { ...newGroup('g', 0), version: ++version }
    return { group, members: [], offsets: [], subscriptions: [], copies: [] }
  }
  const snapshots = createSnapshots({ readGroup }, clock)
  for (const atMs of [0, 20, 40, 60]) {
    nowMs = atMs
    await snapshots.get('g', version + 1)
  }
  // The last read is not old; but the window that it was the last of is over.
  nowMs = 120
  const fresh = await snapshots.get('g', 5)
  assert.equal(fresh?.group.version, 5)
  assert.deepEqual(slept, [])
})
