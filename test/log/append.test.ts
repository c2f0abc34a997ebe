import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { appendDeadlineMs } from '../../core/log/append.ts'
import { ttlDelayMs } from '../../core/log/boundaries.ts'
import { StoreError } from '../../core/store.ts'
import { findBreak } from '../core/model-log.ts'
import { appendRequest, createAppending, finish, timesAt } from './appending.ts'

const minuteMs = 60_000
const throttled = { answer: { outcome: 'throttled' } }

describe('an append', () => {
  test('that is stored is done: one look for the end the first time, none from then on', async () => {
    const appending = createAppending()
    const first = await appending.append(appendRequest('a', { count: 3 }))
    const second = await appending.append(appendRequest('b'))
    assert.deepEqual(first, { outcome: 'stored', base: 1, appendedAtMs: appending.clock.now() })
    assert.deepEqual(second, { outcome: 'stored', base: 4, appendedAtMs: appending.clock.now() })
    assert.deepEqual(appending.puts(), [1, 4])
    assert.equal(appending.count('readHeaders'), 1)
  })

  test('stamps the batch with the time of the put and with the end of its retention', async () => {
    const appending = createAppending()
    const { clock, log } = appending
    appending.next('appendBatch', throttled)
    await finish(clock, appending.append(appendRequest('a', { retentionMs: 5_000 })))
    const [batch] = log.list()
    assert.ok(batch && batch.appendedAtMs > 1_000_000)
    assert.equal(batch.expiresAtMs, batch.appendedAtMs + 5_000)
  })

  test('whose answer was lost is retried at the same base and found by its own publishId', async () => {
    const appending = createAppending()
    appending.next('appendBatch', 'lost answer')
    const result = await finish(appending.clock, appending.append(appendRequest('a')))
    assert.deepEqual(result, { outcome: 'found', base: 1 })
    assert.deepEqual(appending.puts(), [1, 1])
    assert.equal(appending.log.batches.size, 1)
  })

  test('of unknown outcome is retried at the same base with the same publishId until it is known', async () => {
    const appending = createAppending()
    appending.next('appendBatch', 'lost request', 'lost request', throttled, 'lost request')
    const result = await finish(appending.clock, appending.append(appendRequest('a')))
    assert.equal(result.outcome, 'stored')
    assert.deepEqual(appending.puts(), [1, 1, 1, 1, 1])
    assert.deepEqual(
      appending.log.list().map(({ publishId }) => publishId),
      ['a'],
    )
  })

  test('goes at once where the winner ends when it is refused for the first time', async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a'))
    appending.otherAppends('x', { count: 5 })
    const result = await appending.append(appendRequest('b', { pinned: false }))
    assert.deepEqual(result, { outcome: 'stored', base: 7, appendedAtMs: appending.clock.now() })
    assert.deepEqual(appending.puts(), [1, 2, 7])
    assert.equal(appending.count('readHeaders'), 1)
  })

  test('that is refused again is contended, unless it is pinned', async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a'))
    for (const other of ['x', 'y', 'z']) appending.otherAppends(other)
    assert.deepEqual(await appending.append(appendRequest('b', { pinned: false })), { outcome: 'contended' })
    assert.deepEqual(appending.puts(), [1, 2, 3])
  })

  test('that is pinned and refused again waits, walks past every batch to the end, and is stored there', async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a'))
    for (let i = 0; i < 250; i++) appending.otherAppends(`x${i}`, { count: 1 + (i % 3) })
    const running = appending.append(appendRequest('b'))
    const result = await finish(appending.clock, running)
    assert.equal(result.outcome, 'stored')
    assert.equal(findBreak(appending.log), undefined)
    assert.equal(appending.puts().length, 4)
    const walks = appending.calls.flatMap(({ operation, args }) =>
      operation === 'readHeaders' ? [args[0] as { direction: string; consistent: boolean }] : [],
    )
    assert.deepEqual(
      walks.slice(1).map(({ direction, consistent }) => ({ direction, consistent })),
      Array.from({ length: 3 }, () => ({ direction: 'forward', consistent: true })),
    )
  })

  test('finds its own concurrent attempt on the way to the end', async () => {
    for (const ownAt of [0, 1, 2, 150]) {
      const appending = createAppending()
      await appending.append(appendRequest('a'))
      for (let i = 0; i < 200; i++) appending.otherAppends(i === ownAt ? 'b' : `x${i}`)
      const result = await finish(appending.clock, appending.append(appendRequest('b')))
      assert.deepEqual(result, { outcome: 'found', base: 2 + ownAt })
      assert.equal(appending.log.batches.size, 201)
    }
  })

  test('that is throttled until its deadline was not stored', async () => {
    const appending = createAppending()
    appending.next('appendBatch', ...Array.from({ length: 1_000 }, () => throttled))
    const startedAtMs = appending.clock.now()
    const result = await finish(appending.clock, appending.append(appendRequest('a')))
    assert.deepEqual(result, { outcome: 'throttled' })
    const tookMs = appending.clock.now() - startedAtMs
    assert.ok(tookMs >= appendDeadlineMs && tookMs < appendDeadlineMs + 1_000, `it took ${tookMs} ms`)
  })

  test('in doubt until its deadline is unknown, also if it was throttled last', async () => {
    const appending = createAppending()
    appending.next('appendBatch', 'lost request', ...Array.from({ length: 1_000 }, () => throttled))
    const result = await finish(appending.clock, appending.append(appendRequest('a')))
    assert.equal(result.outcome, 'unknown')
    assert.ok(result.outcome === 'unknown' && result.cause instanceof StoreError)
  })

  test('is in doubt no more once another batch has the base that it tried', async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a'))
    appending.next('appendBatch', 'lost request')
    const running = appending.append(appendRequest('b'))
    appending.otherAppends('x')
    appending.next('appendBatch', 'done', ...Array.from({ length: 1_000 }, () => throttled))
    assert.deepEqual(await finish(appending.clock, running), { outcome: 'throttled' })
  })

  test('makes no put after its deadline, however long the look for the end took', async () => {
    const appending = createAppending()
    const { clock, append } = appending
    const late = createAppending({
      resumeAt: async () => {
        late.clock.advance(appendDeadlineMs)
        return 1
      },
    })
    assert.deepEqual(await late.append(appendRequest('a')), { outcome: 'throttled' })
    assert.deepEqual(late.puts(), [])
    assert.equal((await finish(clock, append(appendRequest('a')))).outcome, 'stored')
  })

  test('leaves the failure of a read to its caller', async () => {
    const appending = createAppending()
    appending.next('readHeaders', 'lost request')
    await assert.rejects(appending.append(appendRequest('a')), { name: 'StoreError', kind: 'unavailable' })
    assert.equal((await appending.append(appendRequest('b'))).outcome, 'stored')
  })
})

describe('the end of the log', () => {
  test('is looked for again five minutes after it was learned', async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a'))
    appending.clock.step(5 * minuteMs - 1)
    await appending.append(appendRequest('b'))
    assert.equal(appending.count('readHeaders'), 1)
    appending.clock.step(5 * minuteMs)
    await appending.append(appendRequest('c'))
    assert.equal(appending.count('readHeaders'), 2)
    assert.deepEqual(appending.puts(), [1, 2, 3])
  })

  test('is looked for again when the clock has gone back', async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a'))
    appending.clock.step(-1)
    await appending.append(appendRequest('b'))
    assert.equal(appending.count('readHeaders'), 2)
  })

  test('is not the remembered boundary once the batch behind that was trimmed', async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a'))
    for (const other of ['x', 'y', 'z']) appending.otherAppends(other)
    appending.clock.step(5 * minuteMs)
    appending.log.batches.delete(2)
    const result = await appending.append(appendRequest('b'))
    assert.ok(result.outcome === 'stored' && result.base === 5)
  })

  test('is where the last batch ends, and the checkpoint where that is further', async () => {
    const asked: boolean[] = []
    const appending = createAppending({
      resumeAt: async (_topicName, _queueId, deep) => {
        asked.push(deep)
        return 40
      },
    })
    appending.otherAppends('x', { base: 10, count: 5 })
    assert.ok((await appending.append(appendRequest('a'))).outcome === 'stored')
    assert.deepEqual(appending.puts(), [40])
    assert.deepEqual(asked, [false])
  })

  test('is asked of the registry in depth when the log is empty, or its tail is due for deletion', async () => {
    const asked: boolean[] = []
    const resumeAt = async (_topicName: string, _queueId: number, deep: boolean) => {
      asked.push(deep)
      return deep ? 70 : 40
    }
    const empty = createAppending({ resumeAt })
    await empty.append(appendRequest('a'))
    const due = createAppending({ resumeAt })
    due.otherAppends('x', { expiresAtMs: due.clock.now() - ttlDelayMs })
    await due.append(appendRequest('a'))
    const expired = createAppending({ resumeAt })
    expired.otherAppends('x', { expiresAtMs: expired.clock.now() - ttlDelayMs + 1 })
    await expired.append(appendRequest('a'))
    assert.deepEqual([empty.puts(), due.puts(), expired.puts()], [[70], [70], [40]])
    assert.deepEqual(asked, [true, true, false])
  })
})

describe('the walk to the end', () => {
  /** A publish that walks from offset 4 on, past what others append behind it. */
  const walking = async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a'))
    appending.otherAppends('x2')
    appending.otherAppends('x3')
    return appending
  }

  test('takes a hole that fills for what it is, a batch that was put while it looked', async () => {
    const appending = await walking()
    const x4 = appending.otherAppends('x4')
    const x5 = appending.otherAppends('x5')
    appending.next('readHeaders', { answer: [x5] })
    const result = await finish(appending.clock, appending.append(appendRequest('b')))
    assert.ok(result.outcome === 'stored' && result.base === x5.base + 1)
    assert.equal(x4.base, 4)
    assert.equal(appending.count('readHeaders'), 3)
  })

  test('sees every batch, also where one hole after the other fills while it looks', async () => {
    const appending = await walking()
    const [x4, x5, x6] = ['x4', 'x5', 'x6'].map(publishId => appending.otherAppends(publishId))
    const own = appending.otherAppends('b')
    const x8 = appending.otherAppends('x8')
    appending.next('readHeaders', { answer: [x5] }, { answer: [x4, x5, x6, x8] })
    const result = await finish(appending.clock, appending.append(appendRequest('b')))
    assert.deepEqual(result, { outcome: 'found', base: own.base })
  })

  test('takes a hole that stays for a trimmed batch, whose offsets are not used again', async () => {
    const appending = await walking()
    appending.otherAppends('x4')
    appending.otherAppends('x5')
    appending.log.batches.delete(4)
    const result = await finish(appending.clock, appending.append(appendRequest('b')))
    assert.ok(result.outcome === 'stored' && result.base === 6)
    assert.deepEqual(appending.puts(), [1, 2, 3, 6])
  })

  test('goes on with more pages while there are full ones', async () => {
    const appending = await walking()
    for (let i = 0; i < 200; i++) appending.otherAppends(`y${i}`)
    const result = await finish(appending.clock, appending.append(appendRequest('b')))
    assert.ok(result.outcome === 'stored' && result.base === 204)
    assert.equal(findBreak(appending.log), undefined)
  })
})

describe('a retried publish', () => {
  const retry = { lookBackMs: 1_000 }

  test('is found among the batches since its first attempt, and not stored again', async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a', { count: 2 }))
    for (let i = 0; i < 250; i++) appending.otherAppends(`x${i}`)
    const result = await appending.append(appendRequest('a', { count: 2, ...retry }))
    assert.deepEqual(result, { outcome: 'found', base: 1 })
    assert.deepEqual(appending.puts(), [1])
  })

  test('is stored at the end when no attempt of it is there', async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a'))
    const result = await appending.append(appendRequest('b', retry))
    assert.ok(result.outcome === 'stored' && result.base === 2)
  })

  test('looks no further back than the age of its first attempt and a tolerance for clocks', async () => {
    const appending = createAppending()
    const old = timesAt(appending.clock)
    for (let i = 0; i < 1_000; i++) appending.otherAppends(`old ${i}`, old)
    appending.clock.step(minuteMs + 1_001)
    for (let i = 0; i < 250; i++) appending.otherAppends(`new ${i}`)
    const result = await appending.append(appendRequest('b', retry))
    assert.ok(result.outcome === 'stored')
    // The end; and two pages of new batches, the third being the last with any that is young enough.
    assert.equal(appending.count('readHeaders'), 4)
  })

  test('finds its first attempt though the clock was set forward since', async () => {
    const appending = createAppending()
    await appending.append(appendRequest('a'))
    appending.otherAppends('x')
    appending.clock.step(3 * 3_600_000)
    appending.otherAppends('y')
    assert.deepEqual(await appending.append(appendRequest('a', retry)), { outcome: 'found', base: 1 })
  })
})

describe('a first attempt', () => {
  test('that finds the next one stored before it, as the last batch, is done', async () => {
    const appending = createAppending()
    appending.otherAppends('x')
    const next = appending.otherAppends('a')
    assert.deepEqual(await appending.append(appendRequest('a')), { outcome: 'found', base: next.base })
    assert.deepEqual(appending.puts(), [])
  })
})
