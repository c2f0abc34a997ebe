import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { Message } from '../../sdk/src/message.ts'
import { createHandOuts } from '../../sdk/src/worker/hand-outs.ts'
import { createManualCommits } from '../../sdk/src/worker/manual-commits.ts'
import { createOffsetTracker, type Span } from '../../sdk/src/worker/offset-tracker.ts'
import { seededRandom, settle } from './manual-clock.ts'

/** A queue of which `count` messages are known and none is handed out, and a fail topic that answers when it is told. */
function setUp(count: number) {
  const handOuts = createHandOuts()
  const tracker = createOffsetTracker(0)
  const spans = new Map<number, Span>()
  for (let offset = 1; offset <= count; offset++) spans.set(offset, tracker.started(offset, 1))
  const underWay: { offsets: number[]; answer: (isStored: boolean) => void }[] = []
  const stored: number[] = []
  const finished: number[] = []
  const world = { recorded: 0, onFinish: () => undefined as unknown }
  const commits = createManualCommits({
    handOuts,
    recorded: () => world.recorded,
    hasFailTopic: () => true,
    confirms: () => false,
    bringAway: messages => new Promise(resolve => underWay.push({ offsets: messages.map(toOffset), answer: resolve })),
    finish(messages) {
      for (const { offset } of messages) {
        const span = handOuts.remove(offset)
        if (!span) continue
        finished.push(offset)
        tracker.finished(span, 1)
      }
      world.onFinish()
    },
  })

  function handOut(offset: number) {
    const span = spans.get(offset) ?? assert.fail()
    handOuts.add(messageAt(offset), span)
  }

  function passOver(offset: number) {
    tracker.finished(spans.get(offset) ?? assert.fail(), 1)
  }

  /** The fail topic answers the request that is at `index` of those under way. */
  async function answer(index = 0, isStored = true) {
    const [request] = underWay.splice(index, 1)
    if (isStored) stored.push(...(request?.offsets ?? []))
    request?.answer(isStored)
    await settle()
  }

  async function record() {
    world.recorded = tracker.committable
    commits.recordedMore()
    await settle()
  }

  return { world, handOuts, tracker, commits, underWay, stored, finished, handOut, passOver, answer, record }
}

function messageAt(offset: number): Message {
  return {
    topicName: 'orders',
    queueId: 1,
    offset,
    body: '',
    tag: '',
    bizId: '',
    key: '',
    traceId: '',
    head: {},
    retryCount: 0,
    publishedAtMs: 0,
    sendIp: '',
  }
}

const toOffset = ({ offset }: { offset: number }) => offset
const given = new PmqClientError('closed', 'given up')

/** What has become of a promise: `waits`, `resolved`, or the code of its error. */
function outcomeOf(commit: Promise<void>): { is: string } {
  const outcome = { is: 'waits' }
  commit.then(
    () => {
      outcome.is = 'resolved'
    },
    (error: PmqClientError) => {
      outcome.is = error.code
    },
  )
  return outcome
}

/** `count` messages handed out. */
function handedOut(count: number) {
  const made = setUp(count)
  for (let offset = 1; offset <= count; offset++) made.handOut(offset)
  return made
}

suite('a list of commits by hand', () => {
  test('lets nothing be recorded past a failure that is being stored, whoever commits past it', async () => {
    const { commits, tracker, answer, record, stored } = handedOut(6)
    const first = outcomeOf(commits.commit(3, { failed: [3] }))
    const second = outcomeOf(commits.commit(6))
    const below = outcomeOf(commits.commit(2))
    await record()
    assert.deepEqual([tracker.committable, first.is, second.is, below.is], [2, 'waits', 'waits', 'resolved'])
    await answer()
    assert.deepEqual([tracker.committable, first.is, second.is, stored], [6, 'waits', 'waits', [3]])
    await record()
    assert.deepEqual([first.is, second.is], ['resolved', 'resolved'])
  })

  test('sends a failure once, however many commits name it', async () => {
    const { commits, underWay, answer, record, stored } = handedOut(6)
    const outcomes = [
      outcomeOf(commits.commit(3, { failed: [3] })),
      outcomeOf(commits.commit(3, { failed: [3] })),
      outcomeOf(commits.commit(6, { failed: [3, 5] })),
    ]
    assert.deepEqual(
      underWay.map(({ offsets }) => offsets),
      [[3], [5]],
    )
    await answer(1)
    await record()
    assert.deepEqual(
      outcomes.map(({ is }) => is),
      ['waits', 'waits', 'waits'],
    )
    await answer()
    await record()
    assert.deepEqual(
      [outcomes.map(({ is }) => is), stored],
      [
        ['resolved', 'resolved', 'resolved'],
        [5, 3],
      ],
    )
    await assert.rejects(commits.commit(6, { failed: [3] }), { code: 'invalid_commit' })
  })

  test('the first commit that speaks of a message decides what becomes of it', async () => {
    const { commits, answer, finished } = handedOut(3)
    const commit = outcomeOf(commits.commit(3, { failed: [1] }))
    await assert.rejects(commits.commit(3, { failed: [1, 2] }), { code: 'invalid_commit' })
    assert.deepEqual(finished, [2, 3])
    await answer()
    assert.deepEqual([finished, commit.is], [[2, 3, 1], 'waits'])
  })

  test('a commit that is made while another one finishes its messages finishes no failure of that one', () => {
    const { world, commits, tracker, underWay } = handedOut(3)
    world.onFinish = () => {
      world.onFinish = () => undefined
      void commits.commit(3)
    }
    void commits.commit(2, { failed: [2] })
    assert.deepEqual([tracker.committable, underWay.length], [1, 1])
  })

  test('rejects what waits for a failure that was not stored before the queue was given up', async () => {
    const { commits, tracker, answer, record, stored } = handedOut(4)
    const outcomes = [outcomeOf(commits.commit(2, { failed: [2] })), outcomeOf(commits.commit(4))]
    await answer(0, false)
    const late = outcomeOf(commits.commit(4, { failed: [2] }))
    await record()
    assert.deepEqual([tracker.committable, stored], [1, []])
    commits.close(given)
    await settle()
    assert.deepEqual(
      [...outcomes, late].map(({ is }) => is),
      ['closed', 'closed', 'closed'],
    )
  })

  test('is settled when the failures under way are stored, or the queue is given up', async () => {
    for (const isStored of [true, false]) {
      const { commits, answer } = handedOut(2)
      const commit = outcomeOf(commits.commit(2, { failed: [1] }))
      const settled = outcomeOf(commits.settled())
      await settle()
      assert.equal(settled.is, 'waits')
      await answer(0, isStored)
      assert.equal(settled.is, isStored ? 'resolved' : 'waits')
      commits.close(given)
      await settle()
      assert.deepEqual([settled.is, commit.is], ['resolved', 'closed'])
    }
  })

  test('whatever is committed in whatever order, each message is stored once, done, or not recorded', async () => {
    for (let seed = 1; seed <= 300; seed++) await runOne(seed)
  })
})

/** Random commits of a queue some messages of which are passed over or handed out late, against a model of their fates. */
async function runOne(seed: number) {
  const random = seededRandom(seed)
  const below = (end: number) => Math.floor(random() * end)
  const count = 4 + below(8)
  const { world, handOuts, tracker, commits, underWay, stored, handOut, passOver, answer, record } = setUp(count)
  const fates = new Map<number, 'done' | 'failed'>()
  const made: { offset: number; outcome: { is: string } }[] = []
  const late: number[] = []
  for (let offset = 1; offset <= count; offset++) {
    const kind = random()
    if (kind < 0.15) {
      fates.set(offset, 'done')
      passOver(offset)
    } else if (kind < 0.3) late.push(offset)
    else handOut(offset)
  }

  function commit(offset: number) {
    const known = handOuts.upTo(offset).map(toOffset)
    const failed = known.filter(() => random() < 0.25)
    for (const one of failed) if (!fates.has(one)) fates.set(one, 'failed')
    for (const one of known) if (!fates.has(one)) fates.set(one, 'done')
    made.push({ offset, outcome: outcomeOf(commits.commit(offset, { failed })) })
  }

  function check() {
    const isDone = (offset: number) => {
      const fate = fates.get(offset)
      return fate === 'failed' ? stored.includes(offset) : fate === 'done'
    }
    let reach = 0
    while (reach < count && isDone(reach + 1)) reach++
    assert.equal(tracker.committable, reach, `seed ${seed}`)
    assert.equal(new Set(stored).size, stored.length, `seed ${seed}: stored twice`)
    for (const offset of stored) assert.equal(fates.get(offset), 'failed', `seed ${seed}`)
    for (const { offset, outcome } of made) {
      if (outcome.is === 'resolved') assert.ok(world.recorded >= offset, `seed ${seed}: resolved too early`)
      else assert.equal(outcome.is, 'waits', `seed ${seed}`)
    }
  }

  for (let step = 0; step < 15; step++) {
    const kind = random()
    if (kind < 0.5 && handOuts.highestOffset > 0) commit(1 + below(handOuts.highestOffset))
    else if (kind < 0.7 && underWay.length > 0) await answer(below(underWay.length))
    else if (kind < 0.85 && late.length > 0) handOut(late.shift() ?? 0)
    else await record()
    // Some of them are made at once, with nothing in between.
    if (random() < 0.6) await settle()
    check()
  }
  const isGivenUp = random() < 0.3
  if (!isGivenUp) {
    for (const offset of late) handOut(offset)
    if (handOuts.highestOffset > 0) commit(handOuts.highestOffset)
  }
  const settled = outcomeOf(commits.settled())
  while (underWay.length > 0) await answer(below(underWay.length), !isGivenUp)
  await record()
  check()
  if (!isGivenUp) assert.equal(tracker.committable, count, `seed ${seed}: all is recorded`)
  commits.close(given)
  await settle()
  assert.equal(settled.is, 'resolved', `seed ${seed}`)
  for (const { offset, outcome } of made) {
    assert.equal(outcome.is, world.recorded >= offset ? 'resolved' : 'closed', `seed ${seed}`)
  }
}
