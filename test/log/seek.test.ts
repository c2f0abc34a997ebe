import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { findUnread } from '../../core/log/seek.ts'
import type { BatchHeader } from '../../core/model.ts'
import type { Store } from '../../core/store.ts'
import { scriptStore } from '../core/scripted-store.ts'
import { batchOf, type ContractStore } from '../store/contract.ts'
import { openInMemory } from '../store/open-sqlite.ts'
import { seededRandom } from '../support/random.ts'

const nowMs = 1_000_000

describe('the first unread message', () => {
  let opened: ContractStore
  let store: Store
  before(async () => {
    opened = await openInMemory()
    store = opened.store
  })
  after(() => opened.close())

  /** Puts batches of so many messages each one behind the other; of the first, some are past retention. */
  async function fill(queueId: number, counts: readonly number[], expired: number): Promise<BatchHeader[]> {
    const headers: BatchHeader[] = []
    let base = 1
    for (const [i, count] of counts.entries()) {
      const expiresAtMs = i < expired ? nowMs - 1 - (expired - i) : nowMs + 1 + i
      const batch = batchOf(queueId, base, { count, appendedAtMs: i, expiresAtMs })
      assert.equal((await store.appendBatch(batch)).outcome, 'stored')
      headers.push(batch)
      base += count
    }
    return headers
  }

  test('is found wherever retention ends, as one would who looks at every message', async () => {
    const random = seededRandom(7)
    for (let queueId = 1; queueId <= 60; queueId++) {
      const counts = Array.from({ length: 1 + Math.floor(random() * 12) }, () => 1 + Math.floor(random() * 4))
      const headers = await fill(queueId, counts, Math.floor(random() * (counts.length + 1)))
      const end = counts.reduce((sum, count) => sum + count, 1)
      for (let offset = 1; offset < end; offset++) {
        const batch = headers.find(each => each.expiresAtMs > nowMs && each.base + each.count > offset)
        const found = await findUnread(store, { queueId, offset, end }, nowMs)
        assert.deepEqual(
          found && { offset: found.offset, appendedAtMs: found.appendedAtMs, expiresAtMs: found.expiresAtMs },
          batch && {
            offset: Math.max(offset, batch.base),
            appendedAtMs: batch.appendedAtMs,
            expiresAtMs: batch.expiresAtMs,
          },
        )
      }
    }
  })

  test('costs one read where the next message is there, and some twenty behind a day of what is past retention', async () => {
    const queueId = 1_000
    const end = 20_001
    await fill(
      queueId,
      Array.from({ length: 20_000 }, () => 1),
      15_000,
    )
    const readsFor = async (offset: number) => {
      const { store: watched, calls } = scriptStore(store)
      const found = await findUnread(watched, { queueId, offset, end }, nowMs)
      return { offset: found?.offset, reads: calls.length }
    }
    assert.deepEqual(await readsFor(15_001), { offset: 15_001, reads: 1 })
    const { offset, reads } = await readsFor(1)
    assert.equal(offset, 15_001)
    assert.ok(reads <= 20, `${reads} reads`)
  })
})
