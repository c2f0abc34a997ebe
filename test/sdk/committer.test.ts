import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CommitEntry, CommitResponse, CommitResult } from '../../core/protocol/commit.ts'
import { type CommitSource, createCommitter } from '../../sdk/src/committer.ts'
import { createManualClock, settle } from './manual-clock.ts'

type Sent = { atMs: number; offsets: number[]; givesUp: boolean }

function setUp({ syncCommit = false, asyncCommitIntervalMs = 500 } = {}) {
  const clock = createManualClock()
  const sent: Sent[] = []
  const failed: (number | undefined)[] = []
  const faults: (Error | { delayMs: number } | CommitResponse | undefined)[] = []
  const committer = createCommitter({
    async send(entries, givesUp, signal) {
      sent.push({ atMs: clock.monotonic(), offsets: entries.map(({ offset }) => offset), givesUp })
      const fault = faults.shift()
      if (fault instanceof Error) throw fault
      if (fault && 'delayMs' in fault) await clock.sleep(fault.delayMs, signal)
      else if (fault) return fault
      return { suc: true }
    },
    onFailed: (_, retryInMs) => failed.push(retryInMs),
    clock,
    random: () => 0.5,
    asyncCommitIntervalMs,
    syncCommit,
  })
  return { clock, sent, failed, faults, committer }
}

const entry = (queueOffsetId: number, offset: number): CommitEntry => {
  return { queueOffsetId, offset, offsetVersion: 1, consumerGroupName: 'g', topicName: 't' }
}

type Source = CommitSource & { offset: number; committed: number; results: CommitResult[] }

function source(queueOffsetId: number): Source {
  const made: Source = {
    offset: 0,
    committed: 0,
    results: [],
    nextCommit: () => (made.offset > made.committed ? entry(queueOffsetId, made.offset) : undefined),
    settleCommit(sent, result) {
      made.results.push(result)
      made.committed = sent.offset
    },
  }
  return made
}

suite('committing', () => {
  test('gathers the progress of all queues for an interval and sends the newest of each', async () => {
    const { clock, sent, committer } = setUp()
    const [a, b] = [source(1), source(2)]
    for (const offset of [1, 2, 3]) {
      a.offset = offset
      committer.changed(a)
      await clock.advance(100)
    }
    b.offset = 7
    committer.changed(b)
    await clock.advance(1_000)
    assert.deepEqual(sent, [{ atMs: 500, offsets: [3, 7], givesUp: false }])
    assert.deepEqual([a.committed, b.committed], [3, 7])
  })

  test('sends nothing while nothing changes', async () => {
    const { clock, sent, committer } = setUp()
    const a = source(1)
    a.offset = 1
    committer.changed(a)
    await clock.advance(3_600_000)
    committer.changed(a)
    await clock.advance(3_600_000)
    assert.equal(sent.length, 1)
    assert.equal(clock.sleeping, 0)
  })

  test('with syncCommit sends at the end of the turn, and one request at a time', async () => {
    const { clock, sent, faults, committer } = setUp({ syncCommit: true })
    faults.push({ delayMs: 30 })
    const a = source(1)
    for (const offset of [1, 2]) {
      a.offset = offset
      committer.changed(a)
    }
    await settle()
    for (const offset of [3, 4]) {
      a.offset = offset
      committer.changed(a)
    }
    await clock.advance(30)
    assert.deepEqual(sent, [
      { atMs: 0, offsets: [2], givesUp: false },
      { atMs: 30, offsets: [4], givesUp: false },
    ])
  })

  test('a failed request is followed by one with the newest values', async () => {
    const { clock, sent, failed, faults, committer } = setUp()
    faults.push(new Error('reset'), new Error('reset'))
    const [a, b] = [source(1), source(2)]
    a.offset = 1
    b.offset = 2
    committer.changed(a)
    committer.changed(b)
    await clock.advance(500)
    a.offset = 9
    committer.changed(a)
    await clock.advance(5_000)
    assert.deepEqual(
      sent.map(({ offsets }) => offsets),
      [
        [1, 2],
        [9, 2],
        [9, 2],
      ],
    )
    assert.deepEqual(failed, [100, 200])
    assert.deepEqual([a.committed, b.committed], [9, 2])
  })

  test('gives each source its own result', async () => {
    const { clock, faults, committer } = setUp()
    const [a, b] = [source(1), source(2)]
    faults.push({
      suc: true,
      results: [
        { queueOffsetId: 2, outcome: 'fenced', offsetVersion: 5 },
        { queueOffsetId: 1, outcome: 'advanced' },
        { queueOffsetId: 99, outcome: 'advanced' },
      ],
    })
    for (const [changed, offset] of [
      [a, 1],
      [b, 2],
    ] as const) {
      changed.offset = offset
      committer.changed(changed)
    }
    await clock.advance(500)
    assert.deepEqual(a.results, [{ queueOffsetId: 1, outcome: 'advanced' }])
    assert.deepEqual(b.results, [{ queueOffsetId: 2, outcome: 'fenced', offsetVersion: 5 }])
  })

  test('last commits of one turn travel together, without waiting for the interval', async () => {
    const { sent, committer } = setUp()
    assert.deepEqual(await Promise.all([committer.finish(entry(1, 4), true), committer.finish(entry(2, 5), true)]), [
      'accepted',
      'accepted',
    ])
    assert.deepEqual(sent, [{ atMs: 0, offsets: [4, 5], givesUp: true }])
  })

  test('a last commit is repeated, but not for ever', async () => {
    const { clock, sent, failed, faults, committer } = setUp()
    faults.push(new Error('reset'), new Error('reset'))
    const released = committer.finish(entry(1, 4), true)
    await clock.advance(1_000)
    assert.equal(await released, 'accepted')
    assert.equal(sent.length, 3)

    faults.push(...Array.from({ length: 100 }, () => new Error('away')))
    const given = committer.finish(entry(1, 4), true)
    await clock.advance(30_000)
    assert.equal(await given, 'unanswered')
    assert.equal(failed.at(-1), undefined)
    assert.equal(clock.sleeping, 0)
  })

  test('a last commit has less time once the consumer stops, also one that is under way', async () => {
    const { clock, faults, committer } = setUp()
    faults.push(...Array.from({ length: 100 }, () => new Error('away')))
    let outcome: string | undefined
    void committer.finish(entry(1, 4), true).then(told => {
      outcome = told
    })
    await clock.advance(10_000)
    assert.equal(outcome, undefined)
    committer.hurry()
    await clock.advance(10_000)
    assert.equal(outcome, 'unanswered')
    const given = committer.finish(entry(1, 5), true)
    await clock.advance(5_000)
    assert.equal(await given, 'unanswered')
  })

  test('a last commit that comes too late is told', async () => {
    const { faults, committer } = setUp()
    faults.push({ suc: true, results: [{ queueOffsetId: 1, outcome: 'fenced', offsetVersion: 5 }] })
    const outcomes = Promise.all([committer.finish(entry(1, 4), true), committer.finish(entry(2, 4), true)])
    assert.deepEqual(await outcomes, ['fenced', 'accepted'])
  })

  test('close gives up what is under way', async () => {
    const { clock, faults, committer } = setUp()
    faults.push({ delayMs: 60_000 })
    const [a, b] = [source(1), source(2)]
    a.offset = 1
    committer.changed(a)
    await clock.advance(600)
    b.offset = 1
    committer.changed(b)
    committer.close()
    await settle()
    assert.equal(clock.sleeping, 0)
    committer.changed(b)
    assert.equal(clock.sleeping, 0)
  })
})
