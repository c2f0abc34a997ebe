import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type AppendResult, appendDeadlineMs, createAppender } from '../../core/log/append.ts'
import type { AppendOutcome, LogStore } from '../../core/store.ts'
import { createModelLog, findBreak, type ModelLog, modelStore } from '../core/model-log.ts'
import { intercept } from '../core/scripted-store.ts'
import { batchOf } from '../store/contract.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { appendRequest, finish, settle } from './appending.ts'

const baseOf = (result: AppendResult) => ('base' in result ? result.base : undefined)

describe('a store in which a later put may take effect without the earlier one', () => {
  test('is given one put of a container and a queue at a time, and those of other queues at once', async () => {
    const logs = new Map([1, 2].map(queueId => [queueId, createModelLog()]))
    const { store, underWay, answerOne } = hold(queueId => logs.get(queueId) as ModelLog)
    const append = createAppender({ store, clock: createManualClock(), random: () => 1, resumeAt: async () => 1 })
    const running = [1, 2, 1, 2, 1, 1].map((queueId, i) => append(appendRequest(`p${i}`, { queueId })))
    for (const expected of [[1, 2], [2, 1], [1, 2], [2, 1], [1], [1]]) {
      await settle()
      assert.deepEqual(underWay(), expected)
      answerOne()
    }
    assert.deepEqual((await Promise.all(running)).map(baseOf), [1, 1, 2, 2, 3, 4])
  })

  test('takes the next append of a queue after one that failed', async () => {
    const log = createModelLog()
    let fails = true
    const store = intercept(modelStore(log), async call => {
      if (call.operation !== 'readHeaders' || !fails) return call.run()
      fails = false
      throw new Error('away')
    })
    const append = createAppender({ store, clock: createManualClock(), random: () => 1, resumeAt: async () => 1 })
    const [first, second] = await Promise.allSettled([append(appendRequest('a')), append(appendRequest('b'))])
    assert.equal(first.status, 'rejected')
    assert.ok(second.status === 'fulfilled' && second.value.outcome === 'stored')
  })

  test('is not given an append that has waited for its turn until its deadline', async () => {
    const clock = createManualClock()
    const log = createModelLog()
    const { store, underWay, answerOne } = hold(() => log)
    const append = createAppender({ store, clock, random: () => 1, resumeAt: async () => 1 })
    const first = append(appendRequest('a'))
    const second = append(appendRequest('b'))
    await settle()
    clock.advance(appendDeadlineMs)
    answerOne()
    assert.equal((await first).outcome, 'stored')
    assert.deepEqual(await finish(clock, second), { outcome: 'throttled' })
    assert.deepEqual(underWay(), [])
  })
})

describe('a store in which operations take effect in the order of the calls', () => {
  const inOrder = () => {
    const log = createModelLog()
    const held = hold(() => log, { appendsInOrder: true })
    const clock = createManualClock()
    const append = createAppender({ store: held.store, clock, random: () => 1, resumeAt: async () => 1 })
    return { log, clock, append, ...held }
  }

  test('is given appends at following boundaries before the earlier ones are answered', async () => {
    const { log, append, underWay, answerOne } = inOrder()
    const running = [3, 1, 2].map((count, i) => append(appendRequest(`p${i}`, { count })))
    await settle()
    assert.equal(underWay().length, 3)
    while (underWay().length > 0) answerOne()
    assert.deepEqual((await Promise.all(running)).map(baseOf), [1, 4, 5])
    assert.equal(findBreak(log), undefined)
  })

  test('corrects all of them where another container was there first', async () => {
    const { log, clock, append, underWay, answerOne } = inOrder()
    const start = append(appendRequest('start'))
    await settle()
    answerOne()
    await start
    log.putAtEnd(batchOf(1, 2, { count: 5, publishId: 'x' }))
    const running = Array.from({ length: 5 }, (_, i) => append(appendRequest(`p${i}`)))
    const all = finish(clock, Promise.all(running))
    for (let turn = 0; turn < 100; turn++) {
      await settle()
      while (underWay().length > 0) answerOne()
    }
    const bases = (await all).map(baseOf).sort((a, b) => Number(a) - Number(b))
    assert.deepEqual(bases, [7, 8, 9, 10, 11])
    assert.equal(findBreak(log), undefined)
  })

  test('stores a publish once that is sent again while its first attempt is under way', async () => {
    const { log, clock, append, underWay, answerOne } = inOrder()
    const first = append(appendRequest('a', { count: 2 }))
    await settle()
    const second = append(appendRequest('a', { count: 2, lookBackMs: 0 }))
    await settle()
    while (underWay().length > 0) answerOne()
    assert.equal(baseOf(await first), 1)
    assert.deepEqual(await finish(clock, second), { outcome: 'found', base: 1 })
    assert.equal(log.batches.size, 1)
  })

  test('gives new appends their places behind those under way while a retried one begins at the end that is durable', async () => {
    const { log, clock, append, underWay, answerOne } = inOrder()
    const before = ['a', 'b', 'c'].map(publishId => append(appendRequest(publishId)))
    await settle()
    const retried = append(appendRequest('z', { lookBackMs: 0 }))
    await settle()
    const behind = ['d', 'e'].map(publishId => append(appendRequest(publishId, { pinned: false })))
    const all = finish(clock, Promise.all([...before, ...behind, retried]))
    for (let turn = 0; turn < 100; turn++) {
      await settle()
      while (underWay().length > 0) answerOne()
    }
    assert.deepEqual((await all).map(baseOf), [1, 2, 3, 4, 5, 6])
    assert.equal(findBreak(log), undefined)
  })
})

/**
 * A store whose appends take effect when they are called, are answered one by one, and are read only from then on: what a
 * transaction does that several of them share.
 */
function hold(logOf: (queueId: number) => ModelLog, options: { appendsInOrder?: boolean } = {}) {
  const held: { queueId: number; answer: () => void }[] = []
  const hidden = new Set<unknown>()
  const visible = (log: ModelLog) => createModelLog(new Map([...log.batches].filter(([, batch]) => !hidden.has(batch))))
  const store: LogStore = {
    ...modelStore(createModelLog(), options),
    appendBatch: batch =>
      new Promise<AppendOutcome>(resolve => {
        const log = logOf(batch.queueId)
        const outcome = options.appendsInOrder ? log.putAtEnd(batch) : log.put(batch)
        hidden.add(batch)
        const answer = () => {
          hidden.delete(batch)
          resolve(outcome)
        }
        held.push({ queueId: batch.queueId, answer })
      }),
    readHeaders: async query => visible(logOf(query.queueId)).headers(query),
  }
  return {
    store,
    /** The queues whose appends wait for an answer. */
    underWay: () => held.map(({ queueId }) => queueId),
    answerOne: () => held.shift()?.answer(),
  }
}
