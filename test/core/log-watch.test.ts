import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { TopicSnapshot } from '../../core/model.ts'
import { createLogWatch } from '../../core/tick/log-watch.ts'
import { batchOf, type ContractStore, queueOf, topicOf } from '../store/contract.ts'
import { openInMemory } from '../store/open-sqlite.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { seededRandom } from '../support/random.ts'
import { scriptStore } from './scripted-store.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const queueId = 1

describe('what a container has seen of a log', () => {
  let opened: ContractStore
  let clock: ManualClock
  beforeEach(async () => {
    opened = await openInMemory()
    clock = createManualClock(Date.UTC(2026, 0, 1))
  })
  afterEach(() => opened.close())

  function watch(topic?: TopicSnapshot) {
    const { store, calls, next } = scriptStore(opened.store)
    const logWatch = createLogWatch({ store, clock, topicOf: async () => topic })
    const operations = () => calls.splice(0).map(({ args: [query] }) => query)
    return { logWatch, operations, next, find: () => logWatch.findEnd('orders', queueId) }
  }
  const append = (base: number, count = 1) => {
    const appendedAtMs = clock.now()
    return opened.store.appendBatch(
      batchOf(queueId, base, { count, appendedAtMs, expiresAtMs: appendedAtMs + 60 * minuteMs }),
    )
  }
  const tail = { queueId, fromOffset: Number.MAX_SAFE_INTEGER, direction: 'backward', limit: 1, consistent: false }

  test('is its end, however appends and looks follow one another', async () => {
    const random = seededRandom(3)
    const { find } = watch()
    let end = 1
    for (let i = 0; i < 500; i++) {
      if (random() < 0.4) {
        const count = 1 + Math.floor(random() * 3)
        await append(end, count)
        end += count
      }
      clock.advance(minuteMs / 2)
      if (random() < 0.6) assert.equal(await find(), end)
    }
  })

  test('is read once by all who look within half a minute', async () => {
    const { find, operations } = watch()
    await append(1)
    assert.deepEqual(await Promise.all([find(), find(), find()]), [2, 2, 2])
    clock.advance(minuteMs / 2 - 1)
    await append(2)
    assert.equal(await find(), 2)
    assert.deepEqual(operations(), [tail])
    clock.advance(1)
    assert.equal(await find(), 3)
  })

  test('is looked for where it was, without reading the last batch again, once nothing happens', async () => {
    const { find, operations } = watch()
    await append(1, 5)
    const look = async () => {
      clock.advance(minuteMs)
      return { end: await find(), reads: operations() }
    }
    const nothing = { queueId, fromOffset: 6, direction: 'forward', limit: 1, consistent: false }
    assert.deepEqual(await look(), { end: 6, reads: [tail] })
    assert.deepEqual(await look(), { end: 6, reads: [tail] })
    assert.deepEqual(await look(), { end: 6, reads: [nothing] })
    assert.deepEqual(await look(), { end: 6, reads: [nothing] })
    await append(6, 2)
    await append(8, 2)
    assert.deepEqual(await look(), { end: 10, reads: [nothing, tail] })
    assert.deepEqual(await look(), { end: 10, reads: [tail] })
  })

  test('is where the checkpoint says, where nothing is left; and does not go back when TTL has taken what was there', async () => {
    const topic = { topic: topicOf('orders'), queues: [{ ...queueOf('orders', queueId), checkpoint: 40 }] }
    const { find } = watch({ ...topic, groupNames: [], notifies: [] })
    assert.equal(await find(), 40)
    clock.advance(minuteMs)
    await append(41, 9)
    clock.advance(minuteMs)
    assert.equal(await find(), 50)
    await opened.deleteBatches(queueId, [41])
    clock.advance(3 * dayMs)
    for (let i = 0; i < 3; i++) {
      assert.equal(await find(), 50)
      clock.advance(minuteMs)
    }
  })

  test('is looked for again by the next one where it could not be read', async () => {
    const { find, next } = watch()
    await append(1)
    assert.equal(await find(), 2)
    clock.advance(minuteMs)
    await append(2)
    next('readHeaders', 'lost request')
    await assert.rejects(find())
    assert.equal(await find(), 3)
  })

  test('is told for as long as one asks for', async () => {
    const { logWatch, find } = watch()
    await append(1)
    const seenAtMs = clock.now()
    assert.equal(logWatch.endSince(queueId, 0), undefined)
    await find()
    clock.advance(60 * minuteMs)
    assert.equal(logWatch.endSince(queueId, seenAtMs), 2)
    assert.equal(logWatch.endSince(queueId, seenAtMs + 1), undefined)
  })

  test('is not read again for the first unread message, until that is past retention', async () => {
    const { logWatch, operations } = watch()
    for (let base = 1; base <= 6; base++) {
      await append(base)
      clock.advance(10 * minuteMs)
    }
    // The first is past retention by a moment.
    const offsetOf = async (offset: number) => (await logWatch.findUnread(queueId, offset, 7))?.offset
    assert.equal(await offsetOf(1), 2)
    assert.ok(operations().length > 0)
    assert.equal(await offsetOf(1), 2)
    assert.deepEqual(operations(), [])
    clock.advance(10 * minuteMs)
    assert.equal(await offsetOf(1), 3)
    // Nobody looks once more at what was past retention before.
    assert.deepEqual(
      operations().filter(query => (query as { fromOffset: number }).fromOffset < 2),
      [],
    )
    clock.advance(60 * minuteMs)
    assert.equal(await offsetOf(1), undefined)
    operations()
    assert.equal(await offsetOf(1), undefined)
    assert.ok(operations().length <= 2)
    await append(7)
    assert.equal((await logWatch.findUnread(queueId, 1, 8))?.offset, 7)
  })
})
