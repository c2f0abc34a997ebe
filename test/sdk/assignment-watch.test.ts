import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { createAssignmentWatch } from '../../sdk/src/assignment-watch.ts'
import { createManualClock, settle } from './manual-clock.ts'

const queue = { queueOffsetId: 1, queueId: 1, originTopicName: 'orders' } as AssignedQueue

/** `server` is what the service would answer: the group at its version, if that is above the one presented. */
function begin(
  server: { version: number; queues: AssignedQueue[] },
  faults: (Error | 'nothing')[] = [],
  settingsCheckIntervalMs = 0,
) {
  const clock = createManualClock()
  const polls: { presented: number; atMs: number }[] = []
  const applied: number[] = []
  const failed: (number | undefined)[] = []
  const releases: ((hasGivenUp: boolean) => void)[] = []
  const control = { isHolding: false, isChanging: false }
  let working: AssignedQueue[] | undefined = []
  const differing: string[] = []
  const watch = createAssignmentWatch({
    async poll(presented) {
      polls.push({ presented, atMs: clock.monotonic() })
      const fault = faults.shift()
      if (fault instanceof Error) throw fault
      const assignment = fault === undefined && server.version > presented ? { ...server } : undefined
      return { isChanging: control.isChanging, assignment }
    },
    apply(queues) {
      applied.push(queues.length)
      working = queues
      return control.isHolding ? new Promise(resolve => releases.push(resolve)) : Promise.resolve(false)
    },
    working: () => working,
    topicNames: ['orders'],
    onDiffers: names => differing.push(names.join()),
    settingsCheckIntervalMs,
    onFailed: (_, retryInMs) => failed.push(retryInMs),
    clock,
    random: () => 0.5,
  })
  const ended = watch.run()
  const stop = async () => {
    watch.stop()
    await ended
    assert.equal(clock.sleeping, 0)
  }
  const work = (queues: AssignedQueue[] | undefined) => {
    working = queues
  }
  return { clock, polls, applied, failed, faults, releases, control, differing, work, watch, stop }
}

suite('following the assignment', () => {
  test('a new member asks with growing pauses for its first queues, and then no more', async () => {
    const server = { version: 1, queues: [] as AssignedQueue[] }
    const { clock, polls, applied, stop } = begin(server)
    await clock.advance(1_000)
    const pauses = polls.slice(1).map(({ atMs }, index) => atMs - (polls[index]?.atMs ?? 0))
    assert.deepEqual(pauses, [0, 40, 80, 160, 320], 'the second question presents the version of the first answer')
    Object.assign(server, { version: 2, queues: [queue] })
    await clock.advance(1_000)
    assert.deepEqual(applied, [0, 1])
    const asked = polls.length
    await clock.advance(3_600_000)
    assert.equal(polls.length, asked)
    await stop()
  })

  test('a member that gets no queue stops asking by itself', async () => {
    const { clock, polls, stop } = begin({ version: 1, queues: [] })
    await clock.advance(3_600_000)
    assert.ok(polls.length < 20, `${polls.length} polls`)
    await stop()
  })

  test('without queues it goes on asking while the group is changing hands, and stops asking when that is over', async () => {
    const server = { version: 1, queues: [] as AssignedQueue[] }
    const { clock, polls, applied, control, stop } = begin(server)
    control.isChanging = true
    await clock.advance(30_000)
    const asked = polls.length
    await clock.advance(2_000)
    assert.ok(polls.length > asked)
    Object.assign(server, { version: 2, queues: [queue] })
    await clock.advance(1_000)
    assert.equal(applied.at(-1), 1)
    control.isChanging = false
    await clock.advance(5_000)
    const then = polls.length
    await clock.advance(60_000)
    assert.equal(polls.length, then)
    await stop()
  })

  test('a higher version in any answer makes it ask, a known one does not', async () => {
    const server = { version: 1, queues: [queue] }
    const { clock, polls, applied, watch, stop } = begin(server)
    await clock.advance(10_000)
    const asked = polls.length
    watch.sawVersion(1)
    watch.sawVersion(undefined)
    await clock.advance(10_000)
    assert.equal(polls.length, asked)
    server.version = 2
    watch.sawVersion(2)
    await settle()
    assert.deepEqual(
      polls.slice(asked).map(({ presented }) => presented),
      [1, 2],
      'asked for and, being free of what it takes away, presented',
    )
    assert.equal(applied.length, 2)
    await stop()
  })

  test('an answer from a cache that is behind is asked for again, with growing pauses', async () => {
    const server = { version: 1, queues: [queue] }
    const { clock, polls, applied, faults, watch, stop } = begin(server)
    await clock.advance(10_000)
    const asked = polls.length
    faults.push('nothing', 'nothing', 'nothing')
    server.version = 2
    watch.sawVersion(2)
    await clock.advance(1_000)
    assert.equal(applied.length, 2)
    assert.equal(polls.length, asked + 5)
    await stop()
  })

  test('a version that the service does not have any more is not asked for in a hot loop', async () => {
    const { clock, polls, watch, stop } = begin({ version: 1, queues: [queue] })
    watch.sawVersion(900)
    await clock.advance(600_000)
    assert.ok(polls.length < 140, `${polls.length} polls`)
    await stop()
  })

  test('presents a version only when all that it takes away has been given up', async () => {
    const server = { version: 1, queues: [queue] }
    const { clock, polls, control, releases, watch, stop } = begin(server)
    await clock.advance(10_000)
    control.isHolding = true
    Object.assign(server, { version: 2, queues: [] })
    watch.sawVersion(2)
    await settle()
    server.version = 3
    watch.sawVersion(3)
    await clock.advance(60_000)
    assert.deepEqual([...new Set(polls.map(({ presented }) => presented))], [0, 1])
    for (const release of releases) release(true)
    await settle()
    assert.equal(polls.at(-1)?.presented, 3)
    await stop()
  })

  test('insists for a while when something must have changed', async () => {
    const server = { version: 1, queues: [queue] }
    const { clock, polls, applied, watch, stop } = begin(server)
    await clock.advance(10_000)
    watch.refresh()
    await clock.advance(700)
    server.version = 2
    await clock.advance(1_000)
    assert.equal(applied.length, 2)
    const asked = polls.length
    await clock.advance(3_600_000)
    assert.equal(polls.length, asked)
    await stop()
  })

  test('a failed question is asked again until it is answered', async () => {
    const faults = Array.from({ length: 20 }, () => new Error('away'))
    const { clock, applied, failed, stop } = begin({ version: 1, queues: [queue] }, faults)
    await clock.advance(200_000)
    assert.deepEqual(failed.slice(0, 8), [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
    assert.equal(failed.length, 20)
    assert.deepEqual(applied, [1])
    await stop()
  })

  test('takes nothing after it was stopped', async () => {
    const { clock, applied, watch, stop } = begin({ version: 1, queues: [queue] })
    await stop()
    watch.sawVersion(9)
    watch.refresh()
    await clock.advance(10_000)
    assert.deepEqual(applied, [])
  })
})

suite('looking whether something was missed', () => {
  const minutes = 60_000
  /** From where the tests begin to the first look. */
  const firstLookMs = 5 * minutes - 10_000

  /** A member with one queue, that looks every five minutes. */
  async function settled(...faults: (Error | 'nothing')[]) {
    const server = { version: 7, queues: [queue] }
    const all = begin(server, faults, 5 * minutes)
    await all.clock.advance(10_000)
    assert.deepEqual(all.applied, [1])
    all.polls.length = 0
    return { ...all, server }
  }

  test('costs one question in five minutes, which presents no version, where nothing differs', async () => {
    const { clock, polls, applied, differing, stop } = await settled()
    await clock.advance(60 * minutes)
    assert.deepEqual(
      polls.map(({ presented }) => presented),
      new Array(12).fill(0),
    )
    assert.deepEqual([applied, differing], [[1], []])
    await stop()
  })

  test('asks nothing with an interval of 0', async () => {
    const { clock, polls, stop } = begin({ version: 7, queues: [queue] })
    await clock.advance(10_000)
    polls.length = 0
    await clock.advance(600 * minutes)
    assert.equal(polls.length, 0)
    await stop()
  })

  const differences: [string, Partial<AssignedQueue>[], string][] = [
    ['a setting', [{ threadSize: 9 }], 'threadSize'],
    ['two settings', [{ tag: 'a', stopFlag: 1 } as Partial<AssignedQueue>], 'tag,stopFlag'],
    ['its offsetVersion', [{ offsetVersion: 4 }], 'offsetVersion'],
    ['a queue that it does not work on', [{}, { queueOffsetId: 2 }], 'queues'],
    ['a queue that is not its own', [], 'queues'],
    ['another queue', [{ queueOffsetId: 2 }], 'queues'],
  ]
  for (const [what, changes, names] of differences) {
    test(`${what} that differs in four looks is told by its name, and what the service says is taken over`, async () => {
      const { clock, polls, applied, differing, server, stop } = await settled()
      server.queues = changes.map(change => ({ ...queue, ...change }))
      await clock.advance(firstLookMs + 29_000)
      assert.deepEqual([polls.length, applied, differing], [3, [1], []])
      await clock.advance(1_000)
      assert.deepEqual([polls.length, applied, differing], [4, [1, changes.length], [names]])
      await clock.advance(5 * minutes)
      assert.equal(polls.length, 5)
      assert.equal(differing.length, 1, 'it differs no more')
      await stop()
    })
  }

  test('what differs only for a while is no difference', async () => {
    const { clock, applied, differing, server, stop } = await settled()
    server.queues = [{ ...queue, threadSize: 9 }]
    await clock.advance(firstLookMs + 15_000)
    server.queues = [{ ...queue, stopFlag: 1 }]
    await clock.advance(10_000)
    server.queues = [queue]
    await clock.advance(10 * minutes)
    assert.deepEqual([applied, differing], [[1], []])
    await stop()
  })

  test('offsets, which move, do not count, nor do queues of topics without a handler', async () => {
    const { clock, differing, server, stop } = await settled()
    server.queues = [
      { ...queue, offset: 900, lastId: 3 },
      { ...queue, queueOffsetId: 2, originTopicName: 'other' },
    ]
    await clock.advance(30 * minutes)
    assert.deepEqual(differing, [])
    await stop()
  })

  test('a newer version is taken as any other, without a word', async () => {
    const { clock, applied, polls, differing, server, stop } = await settled()
    Object.assign(server, { version: 8, queues: [queue, { ...queue, queueOffsetId: 2 }] })
    await clock.advance(firstLookMs)
    assert.deepEqual([applied, differing], [[1, 2], []])
    assert.equal(polls.at(-1)?.presented, 8)
    await stop()
  })

  test('nothing is compared while a part is on its way out', async () => {
    const { clock, differing, work, stop } = await settled()
    work(undefined)
    await clock.advance(30 * minutes)
    assert.deepEqual(differing, [])
    await stop()
  })

  test('a version that was set back is adopted, so that later ones are heard of again', async () => {
    const { clock, applied, polls, differing, server, watch, stop } = await settled()
    server.version = 3
    await clock.advance(firstLookMs + 30_000)
    assert.deepEqual([applied, differing], [[1, 1], ['version']])
    assert.equal(polls.at(-1)?.presented, 3)
    server.version = 4
    watch.sawVersion(4)
    await clock.advance(1_000)
    assert.deepEqual(applied, [1, 1, 1])
    await stop()
  })

  test('a look that fails is told, and the next one comes in its time', async () => {
    const { clock, polls, failed, differing, faults, server, stop } = await settled()
    faults.push(new Error('away'))
    server.queues = [{ ...queue, threadSize: 9 }]
    await clock.advance(firstLookMs)
    assert.deepEqual([polls.length, failed.length], [1, 1])
    await clock.advance(5 * minutes + 30_000)
    assert.deepEqual([polls.length, differing], [5, ['threadSize']])
    await stop()
  })
})
