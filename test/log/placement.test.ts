import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { hashKey, placeMessages } from '../../core/log/placement.ts'
import type { PublishMessage } from '../../core/protocol/publish.ts'
import { queueOf } from '../store/contract.ts'

const queuesOf = (count: number, readOnly: number[] = []) =>
  Array.from({ length: count }, (_, i) =>
    queueOf('orders', i + 1, readOnly.includes(i + 1) ? { readOnlySinceMs: 1 } : {}),
  )
const keyed = (key: string): PublishMessage => ({ body: '', key })
const place = (messages: PublishMessage[], queues = queuesOf(4)) => placeMessages('orders', queues, messages)

describe('the placement of messages', () => {
  test('sends those without a key together to a queue of the caller’s choice', () => {
    assert.deepEqual(place([{ body: 'a' }, { body: 'b' }, { body: 'c', key: '' }]), {
      placements: [{ indexes: [0, 1, 2], pinned: false }],
      refusals: [],
    })
  })

  test('pins all of one key to one queue, in their order, whatever is published with them', () => {
    const keys = fc.array(fc.constantFrom('a', 'b', 'c', 'd', ''), { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(keys, drawn => {
        const { placements, refusals } = place(drawn.map(keyed))
        assert.deepEqual(refusals, [])
        assert.deepEqual(
          placements.flatMap(({ indexes }) => indexes).sort((a, b) => a - b),
          drawn.map((_, i) => i),
        )
        for (const { indexes, queueId, pinned } of placements) {
          assert.deepEqual(
            indexes,
            indexes.toSorted((a, b) => a - b),
          )
          assert.equal(pinned, queueId !== undefined)
          for (const index of indexes) {
            const key = drawn[index] ?? ''
            assert.equal(queueId, key === '' ? undefined : place([keyed(key)]).placements[0]?.queueId)
          }
        }
        assert.equal(new Set(placements.map(({ queueId }) => queueId)).size, placements.length)
      }),
    )
  })

  for (const count of [2, 3, 8, 16, 100]) {
    test(`spreads 10,000 keys roughly evenly over ${count} queues`, () => {
      for (const keyOf of [
        (i: number) => `order-${i}`,
        (i: number) => String(i),
        (i: number) => String.fromCharCode(i),
      ]) {
        const perQueue = Array.from({ length: count }, () => 0)
        for (let i = 0; i < 10_000; i++) {
          const slot = hashKey(keyOf(i)) % count
          perQueue[slot] = (perQueue[slot] ?? 0) + 1
        }
        const mean = 10_000 / count
        // Six standard deviations of a fair spread.
        const tolerance = 6 * Math.sqrt(mean)
        for (const n of perQueue) assert.ok(Math.abs(n - mean) < tolerance, `${n} of ${mean} keys in one queue`)
      }
    })
  }

  test('sends no key to a queue that is read-only', () => {
    const queues = queuesOf(4, [1, 3])
    const { placements } = place(
      Array.from({ length: 50 }, (_, i) => keyed(`k${i}`)),
      queues,
    )
    assert.deepEqual(placements.map(({ queueId }) => queueId).sort(), [2, 4])
  })

  test('sends a message to the queue that it names, before its key', () => {
    const { placements } = place([{ body: '', key: 'k', partitionInfo: { queueId: 3 } }])
    assert.deepEqual(placements, [{ indexes: [0], queueId: 3, pinned: true }])
  })

  test('refuses in strict mode a queue that cannot be written, and names those that can', () => {
    for (const strictMode of [1, undefined] as const) {
      for (const queueId of [2, 9]) {
        const partitionInfo = { queueId, ...(strictMode && { strictMode }) }
        const { placements, refusals } = place([{ body: '' }, { body: '', partitionInfo }], queuesOf(3, [2]))
        assert.deepEqual(placements, [{ indexes: [0], pinned: false }])
        assert.equal(refusals.length, 1)
        assert.equal(refusals[0]?.index, 1)
        assert.match(refusals[0]?.error ?? '', new RegExp(`queue ${queueId} .*orders.* 1, 3$`))
      }
    }
  })

  test('takes another queue where strict mode is off', () => {
    const { placements, refusals } = place([{ body: '', partitionInfo: { queueId: 9, strictMode: 0 } }])
    assert.deepEqual(placements, [{ indexes: [0], pinned: false }])
    assert.deepEqual(refusals, [])
  })

  test('hashes a key as it always has, since another hash would break the order of every key', () => {
    assert.deepEqual(
      ['', 'a', 'order-1', '漢字', '\ud800'].map(hashKey),
      [2_872_998_923, 444_641_715, 2_449_496_732, 920_954_693, 1_463_727_854],
    )
  })
})
