import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ConsumerOptions } from '../../sdk/src/consumer-options.ts'
import type { Message, MessageHandler } from '../../sdk/src/message.ts'
import { bodies, setUp } from './consumer-setup.ts'

const failTopicName = 'billing_orders_fail'
const never = new Promise<void>(() => undefined)

/** A world in which whoever handles the body `poison` is gone at that moment, and is found dead a while later. */
function setUpPoison(options: Parameters<typeof setUp>[0] = {}) {
  const world = setUp({ queues: 1, hasFailTopics: true, ...options })
  const { clock, groups, service, consumer } = world
  /** What each process was called with, in turn. */
  const calls: string[][] = []
  /** Before each call, for checks. */
  let look: (messages: readonly Message[]) => void = () => undefined
  let isPoison = ({ body }: Message) => body === 'poison'

  const process = async (given: Partial<ConsumerOptions> = {}, handle: MessageHandler = () => undefined) => {
    const handler: MessageHandler = (messages, context) => {
      calls.push(messages.map(({ body, retryCount }) => (retryCount > 0 ? `${body} ${retryCount}` : body)))
      look(messages)
      if (!messages.some(isPoison)) return handle(messages, context)
      made.network.isCut = true
      return never
    }
    const made = consumer(handler, given)
    await made.start()
    return made
  }
  /** The process that lives is found dead, if it is; the next one has its queues. */
  const bury = async (dead: Awaited<ReturnType<typeof process>>) => {
    dead.network.isCut = true
    for (const id of groups.consumers.keys()) groups.expire(id)
    const stopped = dead.stop()
    await clock.advance(60_000)
    await stopped
    calls.length = 0
    service.requests.length = 0
  }
  return {
    ...world,
    calls,
    process,
    bury,
    watch(looking: typeof look) {
      look = looking
    },
    cure() {
      isPoison = () => false
    },
    /** However many requests one after the other that takes. */
    async until(isSo: () => boolean) {
      for (let seconds = 0; seconds < 200 && !isSo(); seconds++) await clock.advance(1_000)
      assert.ok(isSo())
    },
    failed: () => world.log.stored(failTopicName).map(({ message }) => [message.body, message.retryCount]),
  }
}

const many = (count: number, from = 1) => Array.from({ length: count }, (_, index) => `m${index + from}`)

suite('a message that ends the process of whoever handles it', () => {
  test('ends two, then goes to the fail topic, and everything else is handled', async () => {
    const world = setUpPoison({ settings: { threadSize: 2, consumerBatchSize: 3 } })
    const { clock, log, calls, process, bury, failed, groups, committed } = world
    log.put(1, [...many(6), 'poison', ...many(13, 8)])
    const first = await process()
    await clock.advance(1_000)
    assert.ok(calls.some(call => call.length === 3 && call.includes('poison')))
    await bury(first)

    const second = await process()
    await clock.advance(1_000)
    const alone = calls.slice(0, -1).map(call => call[0])
    assert.deepEqual(calls.at(-1), ['poison'])
    assert.ok(calls.every(call => call.length === 1))
    assert.deepEqual(alone, many(6).slice(-alone.length))
    assert.equal(committed()[0], 6, 'all before was recorded before it was handed out')
    assert.equal(groups.onTrial('billing', 1), 7)
    await bury(second)

    const third = await process()
    await clock.advance(10_000)
    assert.deepEqual(failed(), [['poison', 1]])
    assert.deepEqual(calls.flat().toSorted(), many(13, 8).toSorted())
    assert.deepEqual(committed(), [20])
    const told = third.events.filter(event => 'queueId' in event && event.queueId === 1)
    const [careful] = told.filter(({ type }) => type === 'careful')
    assert.deepEqual(careful?.type === 'careful' && [careful.deaths, careful.suspectOffset], [1, 7])
    const failure = told.find(event => event.type === 'handler_failed')
    assert.ok(failure?.type === 'handler_failed')
    assert.match(String(failure.error), /its consumer was lost with this message alone/i)
    assert.deepEqual([failure.failedOffsets, failure.failTopicName], [[7], failTopicName])
    await third.stop()
  })

  test('is a dead letter after two processes for each time that it may be handled', async () => {
    const { clock, log, process, bury, failed, committed, calls } = setUpPoison({
      settings: { threadSize: 4, consumerBatchSize: 5, retryCount: 3, retryDelay: 60 },
    })
    log.put(1, [...many(3), 'poison', ...many(3, 5)])
    let deaths = 0
    let current = await process()
    const seen = new Set<string>()
    for (let round = 0; round < 40; round++) {
      await clock.advance(10_000)
      for (const body of calls.flat()) seen.add(body)
      if (!current.network.isCut) continue
      deaths++
      await bury(current)
      current = await process()
    }
    assert.deepEqual(
      failed(),
      [1, 2, 3].map(count => ['poison', count]),
    )
    // The wire's `retryCount` 3 is handled three times in all.
    assert.equal(deaths, 2 * 3)
    assert.deepEqual(committed(), [7])
    assert.deepEqual(
      [...seen].filter(body => !body.startsWith('poison')).toSorted(),
      [...many(3), ...many(3, 5)].toSorted(),
    )
    assert.equal(current.count('failures_stored'), 1)
    await current.stop()
  })

  test('is found by a third process where the lost one was far ahead of what was recorded', async () => {
    const { clock, log, process, bury, failed, committed, watch, calls, until } = setUpPoison({
      settings: { threadSize: 2, consumerBatchSize: 3 },
    })
    log.put(1, [...many(300), 'poison', ...many(99, 302)])
    const first = await process({ asyncCommitIntervalMs: 60_000 })
    await clock.advance(1_000)
    assert.ok(first.network.isCut)
    assert.deepEqual(committed(), [0])
    await bury(first)

    const second = await process()
    let most = 0
    watch(messages => {
      most = Math.max(most, (messages.at(-1)?.offset ?? 0) - (committed()[0] ?? 0))
    })
    await until(() => second.network.isCut)
    assert.ok(second.network.isCut)
    assert.ok(most > 1 && most <= 10, `as many as the next one hands out alone, and no more: ${most}`)
    await bury(second)

    const third = await process()
    await clock.advance(1_000)
    assert.ok(third.network.isCut)
    assert.deepEqual(calls.at(-1), ['poison'])
    await bury(third)

    const fourth = await process()
    await until(() => committed()[0] === 400)
    assert.deepEqual(failed(), [['poison', 1]])
    await fourth.stop()
  })

  test('is not handed out before the service knows that it is on trial, however long that takes', async () => {
    const { clock, log, service, groups, process, bury, calls, committed, watch } = setUpPoison()
    log.put(1, many(3))
    groups.expire(0)
    const first = await process({}, () => never)
    await clock.advance(1_000)
    await bury(first)

    watch(([message]) => assert.equal(groups.onTrial('billing', 1), message?.offset))
    service.onRequest = operation => (operation === 'commitOffset' ? { kind: 'unreachable' } : undefined)
    const second = await process()
    await clock.advance(30_000)
    assert.deepEqual(calls, [])
    assert.deepEqual([second.status().queues[0]?.isCareful, second.status().queues[0]?.isHeld], [true, false])
    service.onRequest = () => undefined
    await clock.advance(10_000)
    assert.deepEqual(calls, [['m1'], ['m2'], ['m3']])
    assert.deepEqual(committed(), [3])
    assert.equal(groups.onTrial('billing', 1), undefined)
    assert.equal(second.status().queues[0]?.isCareful, false)
    await second.stop()
  })

  test('is blamed alone, though other queues of its process had messages on trial', async () => {
    const { clock, log, groups, process, bury, failed, committed } = setUpPoison({ queues: 5 })
    for (const queueId of [1, 2, 3, 4, 5]) {
      log.put(queueId, queueId === 3 ? ['a', 'poison', 'b'] : many(20))
    }
    const first = await process({}, () => never)
    await clock.advance(1_000)
    await bury(first)
    const second = await process({}, async (_, { signal }) => clock.sleep(50, signal))
    await clock.advance(10_000)
    assert.ok(second.network.isCut)
    const trials = [1, 2, 3, 4, 5].filter(queueId => groups.onTrial('billing', queueId) !== undefined)
    assert.deepEqual(trials, [3])
    await bury(second)
    const third = await process()
    await clock.advance(10_000)
    assert.deepEqual(failed(), [['poison', 1]])
    assert.deepEqual(committed(), [20, 20, 3, 20, 20])
    await third.stop()
  })

  test('is on trial while it is offered to preHandle, which may say no', async () => {
    const { clock, log, groups, process, bury, calls, committed } = setUpPoison()
    log.put(1, many(2))
    const first = await process({}, () => never)
    await clock.advance(1_000)
    await bury(first)
    const asked: (number | undefined)[] = []
    let says = false
    const preHandle = () => {
      asked.push(groups.onTrial('billing', 1))
      return says
    }
    const second = await process({ listeners: { preHandle } })
    await clock.advance(1_000)
    assert.deepEqual([calls, new Set(asked)], [[], new Set([1])])
    says = true
    await clock.advance(10_000)
    assert.deepEqual(calls, [['m1'], ['m2']])
    assert.deepEqual(committed(), [2])
    await second.stop()
  })
})

suite('a message that ends its processes, where failures stay in place', () => {
  test('is a dead letter when that has happened as often as it may fail', async () => {
    const { clock, log, process, bury, failed, committed } = setUpPoison({
      settings: { retryInPlace: true, retryCount: 4 },
    })
    log.put(1, ['poison', 'm2'])
    let current = await process()
    let deaths = 0
    for (let round = 0; round < 20 && failed().length === 0; round++) {
      await clock.advance(5_000)
      if (!current.network.isCut) continue
      deaths++
      await bury(current)
      current = await process()
    }
    assert.deepEqual(failed(), [['poison', 4]])
    // The first one knew nothing of it.
    assert.equal(deaths, 1 + 4)
    await clock.advance(5_000)
    assert.deepEqual(committed(), [2])
    await current.stop()
  })

  test('is handed out again where there is no fail topic, with a word of it each time', async () => {
    const { clock, log, process, bury, cure, calls, committed } = setUpPoison({ hasFailTopics: false })
    log.put(1, ['poison', 'm2'])
    for (let deaths = 0; deaths < 4; deaths++) {
      const current = await process()
      await clock.advance(5_000)
      assert.deepEqual(calls.at(-1)?.[0], 'poison')
      assert.equal(current.count('careful'), deaths === 0 ? 0 : 1)
      assert.equal(current.count('handler_failed'), deaths < 2 ? 0 : 1)
      await bury(current)
    }
    cure()
    const last = await process()
    await clock.advance(5_000)
    assert.deepEqual(calls.flat(), ['poison', 'm2'])
    assert.deepEqual(committed(), [2])
    await last.stop()
  })

  test('does not keep others waiting that only fail', async () => {
    const { clock, log, process, bury, calls } = setUpPoison({ hasFailTopics: false, settings: { threadSize: 5 } })
    log.put(1, many(4))
    const first = await process({}, () => never)
    await clock.advance(1_000)
    await bury(first)
    const second = await process({}, ([message]) => (message?.body === 'm1' ? [message.offset] : undefined))
    await clock.advance(1_000)
    assert.deepEqual(
      calls.flat().filter(body => body !== 'm1'),
      ['m2', 'm3', 'm4'],
    )
    await second.stop()
  })
})

suite('a message that ends its processes, where commits are made by hand', () => {
  test('goes to the fail topic, and the application gathers the others as it likes', async () => {
    const { clock, log, process, bury, failed, committed } = setUpPoison()
    log.put(1, ['poison', ...many(5, 2)])
    const byHand: Partial<ConsumerOptions> = { commit: 'manual' }
    for (let deaths = 0; deaths < 2; deaths++) {
      const lost = await process(byHand)
      await clock.advance(1_000)
      assert.ok(lost.network.isCut)
      await bury(lost)
    }
    let gathered = 0
    const last = await process(byHand, (messages, { commit }) => {
      gathered += messages.length
      if (gathered === 5) void commit(messages.at(-1)?.offset ?? 0)
    })
    await clock.advance(5_000)
    assert.deepEqual(failed(), [['poison', 1]])
    assert.deepEqual([gathered, committed()], [5, [6]])
    assert.deepEqual([last.count('handler_failed'), last.count('failures_stored')], [1, 1])
    await last.stop()
  })
})

suite('a queue whose owner was lost', () => {
  const lose = async (world: ReturnType<typeof setUpPoison>) => {
    const first = await world.process({}, () => never)
    await world.clock.advance(1_000)
    await world.bury(first)
  }

  test('goes back to its settings when it has been worked through, or far enough', async () => {
    const world = setUpPoison({ settings: { threadSize: 1, consumerBatchSize: 7 } })
    const { clock, log, calls, process } = world
    log.put(1, many(12))
    await lose(world)
    const second = await process({ maxBufferedMessages: 100 })
    await clock.advance(5_000)
    assert.deepEqual(
      calls.map(call => call.length),
      [...many(10).map(() => 1), 2],
    )
    assert.equal(second.status().queues[0]?.isCareful, false)
    calls.length = 0
    log.put(1, bodies(21))
    await clock.advance(5_000)
    assert.deepEqual(
      calls.map(call => call.length),
      [7, 7, 7],
    )
    await second.stop()

    log.put(1, bodies(300))
    await lose(world)
    const third = await process({ maxBufferedMessages: 100 })
    await clock.advanceUntil(() => calls.length > 30)
    assert.equal(third.status().queues[0]?.isCareful, false, 'as far as the lost one can have been')
    await clock.advance(5_000)
    await third.stop()
  })

  test('costs no commit more where nobody was lost', async () => {
    const { clock, log, service, process, calls } = setUpPoison({ settings: { consumerBatchSize: 5 } })
    log.put(1, many(20))
    const only = await process()
    await clock.advance(5_000)
    const commits = service.requests.filter(({ operation }) => operation === 'commitOffset')
    assert.equal(commits.length, 1)
    assert.ok(commits.every(({ request }) => request.queueOffsets?.every(entry => !('trialOffset' in entry))))
    assert.equal(calls.length, 4)
    await only.stop()
  })

  test('is given up in time, also while the service does not answer what is on trial', async () => {
    const world = setUpPoison()
    const { clock, log, service, process, calls } = world
    log.put(1, many(3))
    await lose(world)
    service.onRequest = operation => (operation === 'commitOffset' ? { kind: 'unreachable' } : undefined)
    const second = await process()
    await clock.advance(2_000)
    const stopped = second.stop()
    await clock.advance(10_000)
    await stopped
    assert.deepEqual([calls, clock.sleeping], [[], 0])
  })

  test('has nothing on trial any more when its consumer has stopped and keeps its place', async () => {
    const world = setUpPoison()
    const { clock, log, groups, process } = world
    log.put(1, many(3))
    await lose(world)
    const second = await process({ instanceId: 'pod-0', stopTimeoutMs: 1_000 }, () => never)
    await clock.advance(2_000)
    assert.equal(groups.onTrial('billing', 1), 1)
    const stopped = second.stop()
    await clock.advance(5_000)
    await stopped
    assert.equal(groups.onTrial('billing', 1), undefined)
  })

  test('does not differ from what the service says', async () => {
    const world = setUpPoison()
    const { clock, log, process } = world
    log.put(1, many(30))
    await lose(world)
    const second = await process({ settingsCheckIntervalMs: 10_000 })
    await clock.advance(300_000)
    assert.equal(second.count('settings_differ'), 0)
    await second.stop()
  })
})
