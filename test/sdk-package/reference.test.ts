import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { referenceFolder, renderReference } from '../../sdk/build/reference.ts'

test('docs/sdk-api is what the SDK exports now, and every export has a comment (else: npm run reference -w sdk)', async () => {
  const rendered = await renderReference()
  const kept = readdirSync(referenceFolder).map(
    name => [name, readFileSync(join(referenceFolder, name), 'utf8')] as const,
  )
  assert.deepEqual([...rendered.keys()].sort(), kept.map(([name]) => name).sort())
  const stale = kept.filter(([name, text]) => rendered.get(name) !== text).map(([name]) => name)
  assert.deepEqual(stale, [], 'stale: npm run reference -w sdk')
})
