import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { FailuresRequest } from '../../core/protocol/failures.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { Message, MessageHandler } from '../../sdk/src/message.ts'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'

type World = ReturnType<typeof setUp>

/** The queue of `orders` is 1, that of its fail topic 2. */
const failQueueId = 2
const failTopicName = 'billing_orders_fail'
const one = { queues: 1, hasFailTopics: true }

const failuresSent = ({ service }: World) =>
  service.requests
    .filter(({ operation }) => operation === 'publishAndUpdateResultFailMsg')
    .map(({ request }) => request as FailuresRequest)
const stored = ({ log }: World) => log.stored(failTopicName).map(({ message }) => [message.body, message.retryCount])

/** A handler that fails one body, always. */
const failing =
  (body: string, seen: string[] = []): MessageHandler =>
  messages => {
    for (const message of messages) seen.push(`${message.body} ${message.retryCount}`)
    return messages.filter(message => message.body === body).map(({ offset }) => offset)
  }

suite('what a handler fails on', () => {
  test('goes to the fail topic with all that it has, the queue moves on, and nothing else is handled twice', async () => {
    const world = setUp({ ...one, settings: { threadSize: 1, consumerBatchSize: 10, retryCount: 1 } })
    const { clock, consumer, log, committed } = world
    const seen: string[] = []
    const { start, stop, events } = consumer(failing('m4', seen))
    await start()
    const message = { body: 'm4', key: 'k', tag: 't', bizId: 'b', traceId: 'x', head: { name: 'value' } }
    log.put(1, [...bodies(4), message, 'm5'])
    await clock.advance(200_000)
    assert.deepEqual(seen, ['m0 0', 'm1 0', 'm2 0', 'm3 0', 'm4 0', 'm5 0'])
    assert.deepEqual(
      log.stored(failTopicName).map(({ message: failed }) => failed),
      [{ ...message, retryCount: 1 }],
    )
    assert.deepEqual(committed(), [6])
    const [request] = failuresSent(world)
    assert.deepEqual(
      { ...request, failMsg: undefined },
      {
        ...request,
        failMsg: undefined,
        queueId: 1,
        consumerId: 1,
        consumerGroupName: 'billing',
        queueOffsetId: 1001,
        offsetVersion: 1,
      },
    )
    assert.equal(request?.ids, undefined, 'of a normal queue nobody has to know what succeeded')
    const told = events.find(({ type }) => type === 'failures_stored')
    assert.ok(told?.type === 'failures_stored')
    assert.deepEqual([told.failTopicName, told.offsets, told.deadOffsets], [failTopicName, [5], [5]])
    await stop()
  })

  const ways: [string, MessageHandler][] = [
    ['throws', () => assert.fail('no')],
    ['rejects', async () => Promise.reject(null)],
    ['returns offsets', messages => messages.map(({ offset }) => offset)],
    ['returns what makes no sense', (() => 'done') as unknown as MessageHandler],
    ['takes too long', () => new Promise(() => undefined)],
  ]
  for (const [what, handler] of ways) {
    test(`is executed as often and as late as the subscription says, and then no more, if it ${what}`, async () => {
      const settings = { timeout: 1, retryCount: 4, retryDelay: 60, retryBackoffRate: 2, maxRetryDelay: 200 }
      const world = setUp({ ...one, settings })
      const { clock, consumer, log, groups } = world
      const atMs: number[] = []
      const { start, stop, status, count } = consumer(
        (messages, context) => {
          atMs.push(clock.monotonic())
          return handler(messages, context)
        },
        { asyncCommitIntervalMs: 10, maxPullWaitMs: 0, pullDeltaTimeMs: 10 },
      )
      await start()
      groups.changeSettings('billing', { maxPullTime: 1 })
      log.put(1, ['poison'])
      await clock.advance(600_000)
      // A time-out comes a second after the call; that much later is the append.
      const late = what === 'takes too long' ? 1_000 : 0
      const delays = atMs.slice(1).map((ms, index) => ms - (atMs[index] ?? 0) - late)
      assert.equal(delays.length, 3, 'a retryCount of 4 on the wire is three further executions')
      for (const [index, expected] of [60_000, 120_000, 200_000].entries()) {
        const delay = delays[index] ?? 0
        assert.ok(delay >= expected && delay <= expected + 1_000, `${delay} ms instead of ${expected}`)
      }
      assert.deepEqual(
        stored(world).map(([, retryCount]) => retryCount),
        [1, 2, 3, 4],
      )
      assert.equal(groups.committed('billing', failQueueId), 4, 'the dead letter counts as consumed')
      assert.equal(count('handler_failed'), 4)
      assert.equal(status().queues.length, 2)
      await stop()
    })
  }

  test('is retried later the sooner the delay is changed, also while it waits', async () => {
    const world = setUp({ ...one, settings: { retryDelay: 3_600 } })
    const { clock, consumer, log, groups } = world
    const atMs: number[] = []
    const { start, stop, status } = consumer(([message]) => {
      if (atMs.push(clock.monotonic()) === 1) return [message?.offset ?? 0]
    })
    await start()
    log.put(1, ['a'])
    await clock.advance(30_000)
    const waiting = status().queues.find(({ queueId }) => queueId === failQueueId)
    assert.deepEqual([waiting?.delayed, waiting?.running, waiting?.buffered], [1, 0, 1])
    assert.equal(waiting?.nextDueAtMs, (log.queues.get(failQueueId)?.batches[0]?.time ?? 0) + 3_600_000)
    groups.changeSettings('billing', { retryDelay: 60 })
    await clock.advance(40_000)
    assert.equal(atMs.length, 2)
    await stop()
  })

  test('keeps its slot, and nothing is committed past it, until the fail topic has it, however long that takes', async () => {
    const world = setUp({ ...one, settings: { threadSize: 2, consumerBatchSize: 1, retryDelay: 43_200 } })
    const { clock, consumer, log, committed, service } = world
    const { seen, handler } = recorder()
    const made = consumer(messages => (messages[0]?.offset === 3 ? [3] : handler(messages)))
    await made.start()
    const refusals = [
      { kind: 'unreachable' },
      { kind: 'hang' },
      { kind: 'answer', answer: { suc: false, msg: 'no' } },
      { kind: 'fail', error: new PmqClientError('bad_request', 'no') },
      { kind: 'lose_answer' },
    ] as const
    let asked = 0
    service.onRequest = operation =>
      operation === 'publishAndUpdateResultFailMsg' ? refusals[Math.min(asked++, 199) % refusals.length] : undefined
    log.put(1, bodies(6))
    await clock.advance(1_800_000)
    assert.deepEqual(committed(), [2])
    assert.deepEqual(seen, ['1:1', '1:2', '1:4', '1:5', '1:6'])
    assert.equal(made.status().queues.find(({ queueId }) => queueId === 1)?.failing, 1)
    const requests = failuresSent(world)
    assert.ok(requests.length > 60 && requests.length < 1_000, `${requests.length} requests`)
    assert.equal(new Set(requests.map(({ failMsg }) => failMsg?.publishId)).size, 1)
    assert.deepEqual(
      requests.map(({ failMsg }) => failMsg?.attempt),
      requests.map((_, index) => index + 1),
    )
    service.onRequest = () => undefined
    await clock.advance(60_000)
    assert.deepEqual(committed(), [6])
    assert.deepEqual(stored(world), [['m2', 1]], 'stored once, though an answer was lost before')
    await made.stop()
  })

  test('is dropped like a fenced commit where the queue has another owner by now', async () => {
    const { clock, consumer, log, groups, service, committed } = setUp(one)
    const made = consumer(failing('m2'))
    await made.start()
    const second = consumer(() => undefined)
    service.onRequest = operation =>
      operation === 'publishAndUpdateResultFailMsg' ? { kind: 'unreachable' } : undefined
    log.put(1, bodies(5))
    await clock.advance(1_000)
    await second.start()
    groups.seize('billing', 1, 2)
    service.onRequest = operation => (operation === 'commitOffset' ? { kind: 'unreachable' } : undefined)
    await clock.advance(10_000)
    assert.equal(made.count('fenced'), 1)
    assert.deepEqual(log.stored(failTopicName), [])
    service.onRequest = () => undefined
    await clock.advance(10_000)
    assert.deepEqual(committed(), [5], 'the next owner has done it')
    await Promise.all([made.stop(), second.stop()])
  })

  test('travels in as many requests as one may carry', async () => {
    const world = setUp({ ...one, settings: { consumerBatchSize: 10 } })
    const { clock, consumer, log, committed } = world
    const { start, stop } = consumer(messages => messages.map(({ offset }) => offset), {
      maxPullBytes: 4 * 1024 * 1024,
    })
    await start()
    log.put(
      1,
      Array.from({ length: 10 }, (_, index) => `${index}`.padEnd(250_000, 'x')),
    )
    await clock.advance(1_000)
    const requests = failuresSent(world)
    assert.deepEqual(
      requests.map(({ failMsg }) => failMsg?.msgs?.length),
      [4, 4, 2],
    )
    assert.equal(new Set(requests.map(({ failMsg }) => failMsg?.publishId)).size, 3)
    assert.deepEqual([stored(world).length, committed()], [10, [10]])
    await stop()
  })

  test('is recorded before a stop ends', async () => {
    const world = setUp(one)
    const { clock, consumer, log, committed } = world
    const { start, stop } = consumer(async (_, { signal }) => {
      await clock.sleep(3_000, signal)
      throw undefined
    })
    await start()
    log.put(1, ['a', 'b'])
    await clock.advance(1_000)
    const stopped = stop()
    await clock.advance(5_000)
    await stopped
    assert.deepEqual(
      [stored(world), committed()],
      [
        [
          ['a', 1],
          ['b', 1],
        ],
        [2],
      ],
    )
    assert.equal(clock.sleeping, 0)
  })

  test('is left to the next owner by a stop whose time is over before the fail topic has it', async () => {
    const world = setUp(one)
    const { clock, consumer, log, committed, service } = world
    const { start, stop } = consumer(failing('m0'), { stopTimeoutMs: 2_000 })
    await start()
    service.onRequest = operation =>
      operation === 'publishAndUpdateResultFailMsg' ? { kind: 'unreachable' } : undefined
    log.put(1, bodies(2))
    await clock.advance(1_000)
    const stopped = stop()
    await clock.advance(3_000)
    await stopped
    assert.deepEqual([stored(world), committed(), clock.sleeping], [[], [0], 0])
  })

  test('of a fail queue tells with it what has succeeded, as everything that succeeds there is told', async () => {
    const world = setUp({ ...one, settings: { consumerBatchSize: 3, retryDelay: 1 } })
    const { clock, consumer, log } = world
    const { start, stop } = consumer(failing('b'))
    await start()
    log.put(
      failQueueId,
      ['a', 'b', 'c'].map(body => ({ body, retryCount: 1 })),
    )
    log.put(failQueueId, [{ body: 'd', retryCount: 1 }])
    await clock.advance(1_500)
    assert.deepEqual(
      failuresSent(world).map(({ ids, failMsg }) => [
        ids,
        failMsg?.msgs?.map(({ body, retryCount }) => [body, retryCount]),
      ]),
      [
        [[1, 3], [['b', 2]]],
        [[4], undefined],
      ],
    )
    await stop()
  })

  test('is told when it succeeds later, however long that takes, and nothing is committed past it before', async () => {
    const world = setUp({ ...one, settings: { threadSize: 1, consumerBatchSize: 1, retryDelay: 1 } })
    const { clock, consumer, log, groups, service } = world
    const { seen, handler } = recorder()
    const made = consumer(handler)
    await made.start()
    const refusals = [
      { kind: 'unreachable' },
      { kind: 'lose_answer' },
      { kind: 'answer', answer: { suc: false } },
    ] as const
    let asked = 0
    service.onRequest = operation =>
      operation === 'publishAndUpdateResultFailMsg' ? refusals[asked++ % refusals.length] : undefined
    log.put(
      failQueueId,
      ['a', 'b'].map(body => ({ body, retryCount: 1 })),
    )
    await clock.advance(600_000)
    assert.equal(groups.committed('billing', failQueueId), 0)
    assert.deepEqual(seen, ['2:1'], 'its slot starts nothing meanwhile')
    assert.equal(made.count('handler_failed'), 0)
    service.onRequest = () => undefined
    await clock.advance(60_000)
    assert.equal(groups.committed('billing', failQueueId), 2)
    assert.deepEqual(seen, ['2:1', '2:2'])
    const told = failuresSent(world)
    assert.deepEqual(told.at(-1), { ...told.at(-1), ids: [2], queueId: failQueueId, consumerGroupName: 'billing' })
    assert.ok(told.every(({ failMsg, cause }) => failMsg === undefined && cause === undefined))
    await made.stop()
  })

  test('is left to the next owner where its success could not be told before a stop', async () => {
    const { clock, consumer, log, groups, service } = setUp({ ...one, settings: { retryDelay: 1 } })
    const { start, stop } = consumer(() => undefined, { stopTimeoutMs: 2_000 })
    await start()
    service.onRequest = operation =>
      operation === 'publishAndUpdateResultFailMsg' ? { kind: 'unreachable' } : undefined
    log.put(failQueueId, [{ body: 'a', retryCount: 1 }])
    await clock.advance(5_000)
    const stopped = stop()
    await clock.advance(3_000)
    await stopped
    assert.deepEqual([groups.committed('billing', failQueueId), clock.sleeping], [0, 0])
  })

  test('tells how: what was thrown, that it took too long, or that it was named', async () => {
    const cases: [MessageHandler, { kind: string; text?: string }][] = [
      [
        () => {
          throw new RangeError('it broke')
        },
        { kind: 'threw', text: 'RangeError: it broke' },
      ],
      [async () => Promise.reject(null), { kind: 'threw', text: 'null' }],
      [
        () => {
          throw undefined
        },
        { kind: 'threw', text: 'undefined' },
      ],
      [() => Promise.reject('x'.repeat(5_000)), { kind: 'threw', text: 'x'.repeat(1_000) }],
      [
        () => Promise.reject(Object.defineProperty(new Error(), 'message', { get: () => assert.fail() })),
        { kind: 'threw' },
      ],
      [() => Promise.reject(Object.create(null)), { kind: 'threw' }],
      [messages => messages.map(({ offset }) => offset), { kind: 'returned' }],
      [
        () => [0],
        {
          kind: 'invalid_result',
          text: 'The handler returned an array with 0; it must return nothing, or an array of offsets of its messages.',
        },
      ],
      [
        () => new Promise(() => undefined),
        { kind: 'timed_out', text: 'The handler took longer than the 1 s of its subscription.' },
      ],
    ]
    for (const [handler, cause] of cases) {
      const world = setUp({ ...one, settings: { timeout: 1, retryDelay: 3_600 } })
      const { start, stop } = world.consumer(handler)
      await start()
      world.log.put(1, ['a'])
      await world.clock.advance(5_000)
      assert.deepEqual(failuresSent(world)[0]?.cause, cause)
      await stop()
    }
  })

  test('is handed out again in place in a group that has no fail topic, alone', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1, settings: { consumerBatchSize: 5 } })
    let left = 3
    const seen: string[] = []
    const { start, stop } = consumer(messages => {
      seen.push(messages.map(({ offset }) => offset).join())
      return left-- > 0 ? [2, 2] : []
    })
    await start()
    log.put(1, bodies(7))
    await clock.advance(500)
    assert.deepEqual([seen, committed()], [['1,2,3,4,5', '2', '2'], [0]])
    await clock.advance(5_000)
    assert.deepEqual([seen, committed()], [['1,2,3,4,5', '2', '2', '2', '6,7'], [7]])
    await stop()
  })
})

suite('order and failures', () => {
  const twice = () => {
    let left = 2
    const { seen, handler } = recorder()
    const failsTwice = (messages: readonly Message[]) => {
      if (messages[0]?.body === 'm4' && left-- > 0) throw new Error('no')
      return handler(messages)
    }
    return { seen, handler: failsTwice }
  }

  test('with a fail topic the others go on, and what failed comes behind them', async () => {
    const { clock, consumer, log } = setUp({ ...one, settings: { consumerBatchSize: 1, retryDelay: 60 } })
    const { seen, handler } = twice()
    const { start, stop } = consumer(handler)
    await start()
    log.put(1, bodies(10))
    await clock.advance(200_000)
    assert.deepEqual(seen, [...upTo(1, 4), ...upTo(1, 10, 6), `${failQueueId}:2`])
    await stop()
  })

  test('in place the order is strict, and one that can never succeed goes to the fail topic for good', async () => {
    const settings = { consumerBatchSize: 1, retryInPlace: true, retryCount: 4 }
    const world = setUp({ ...one, settings })
    const { clock, consumer, log, committed } = world
    const { seen, handler } = twice()
    const made = consumer(messages => {
      if (messages[0]?.body === 'm7') return [messages[0].offset]
      return handler(messages)
    })
    await made.start()
    log.put(1, bodies(10))
    await clock.advance(600_000)
    assert.deepEqual(seen, [...upTo(1, 7), ...upTo(1, 10, 9)])
    assert.deepEqual(stored(world), [['m7', 4]])
    assert.deepEqual(committed(), [10])
    assert.equal(made.count('handler_failed'), 2 + 4)
    assert.equal(log.bodies(failQueueId).length, 1, 'a dead letter is executed no more')
    await made.stop()
  })

  test('in place the next owner of the queue counts failures anew', async () => {
    const world = setUp({ ...one, settings: { retryInPlace: true, retryCount: 4 } })
    const { clock, consumer, log, committed } = world
    const first = consumer(failing('m0'), { stopTimeoutMs: 0 })
    await first.start()
    log.put(1, bodies(1))
    await clock.advanceUntil(() => first.count('handler_failed') === 3)
    const stopped = first.stop()
    await clock.advance(1)
    await stopped
    const next = consumer(failing('m0'))
    await next.start()
    await clock.advance(60_000)
    assert.deepEqual([first.count('handler_failed'), next.count('handler_failed')], [3, 4])
    assert.deepEqual([stored(world), committed()], [[['m0', 4]], [1]])
    await next.stop()
  })
})
