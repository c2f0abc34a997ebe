import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createClient } from '../../sdk/src/client.ts'
import { PmqClientError, PublishError } from '../../sdk/src/errors.ts'
import type { Fault } from './fake-service.ts'
import { seededRandom, settle } from './manual-clock.ts'
import { failureOf, setUpProducer as setUp } from './producer-setup.ts'

const bodies = (count: number, prefix = 'm') => Array.from({ length: count }, (_, index) => ({ body: prefix + index }))

suite('gathering', () => {
  test('a list with a hole is refused as a whole, and not answered with the places of others', async () => {
    const { producer, service } = setUp()
    const messages = new Array<{ body: string }>(2)
    messages[1] = { body: 'x' }
    const error = await failureOf(producer.publish('orders', messages))
    assert.deepEqual([error.code, error.outcome], ['invalid_message', 'not_stored'])
    assert.equal(error.message, 'message 0 is undefined; it must be an object')
    assert.equal(service.log.stored('orders').length, 0)
  })

  test('publishes made in one turn travel as one request, and each call gets its own place', async () => {
    const { producer, publishes, service } = setUp()
    const results = await Promise.all(bodies(50).map(message => producer.publish('orders', message)))
    assert.equal(publishes().length, 1)
    const stored = service.log.stored('orders')
    for (const [index, { queueId, offset }] of results.entries()) {
      assert.equal(stored.find(at => at.queueId === queueId && at.offset === offset)?.message.body, `m${index}`)
    }
  })

  test('a lone publish waits for no time to pass', async () => {
    const { producer, clock } = setUp()
    await producer.publish('orders', { body: 'a' })
    assert.equal(clock.monotonic(), 0)
  })

  test('what is published behind a request under way gathers until that is answered', async () => {
    const { producer, clock, meet, publishes } = setUp()
    meet({ kind: 'delay', ms: 40 })
    const first = producer.publish('orders', { body: 'first' })
    await settle()
    const rest = bodies(5).map(message => producer.publish('orders', message))
    await clock.advance(39)
    assert.equal(publishes().length, 1)
    await clock.advance(1)
    await Promise.all([first, ...rest])
    assert.deepEqual(
      publishes().map(({ request }) => request.msgs?.length),
      [1, 5],
    )
  })

  test('a full batch does not wait for the request under way', async () => {
    const { producer, clock, meet, publishes } = setUp({ maxBatchMessages: 10 })
    meet({ kind: 'delay', ms: 40 })
    const first = producer.publish('orders', { body: 'first' })
    await settle()
    const rest = bodies(25).map(message => producer.publish('orders', message))
    await settle()
    const sizes = () => publishes().map(({ request }) => request.msgs?.length)
    assert.deepEqual(sizes(), [1, 10, 10])
    await clock.advance(40)
    await Promise.all([first, ...rest])
    assert.deepEqual(sizes(), [1, 10, 10, 5])
  })

  test('a request that hangs does not hold up the others for longer than a tenth of a second', async () => {
    const { producer, clock, meet } = setUp()
    meet({ kind: 'hang' })
    const hanging = producer.publish('orders', { body: 'hanging' })
    await settle()
    const next = producer.publish('orders', { body: 'next' })
    await clock.advance(100)
    await next
    await clock.advance(11_000)
    await hanging
  })

  test('with lingerMs a message waits that long for company', async () => {
    const { producer, clock, publishes } = setUp({ lingerMs: 20 })
    const first = producer.publish('orders', { body: 'a' })
    await clock.advance(19)
    assert.equal(publishes().length, 0)
    const second = producer.publish('orders', { body: 'b' })
    await clock.advance(1)
    await Promise.all([first, second])
    assert.equal(publishes().length, 1)
  })

  test('a batch that is full does not linger', async () => {
    const { producer, clock } = setUp({ lingerMs: 20, maxBatchMessages: 2 })
    const first = producer.publish('orders', { body: 'a' })
    await settle()
    await Promise.all([first, producer.publish('orders', { body: 'b' })])
    assert.equal(clock.monotonic(), 0)
  })

  test('no request passes maxBatchMessages, maxBatchBytes or maxInFlight', async () => {
    const { producer, publishes, service, clock } = setUp({ maxBatchMessages: 7, maxBatchBytes: 1_000, maxInFlight: 3 })
    service.onRequest = () => ({ kind: 'delay', ms: 5 })
    const all = bodies(200).map(({ body }, index) => producer.publish('orders', { body: body + 'x'.repeat(index) }))
    await clock.advance(1_000)
    await Promise.all(all)
    for (const { request } of publishes()) {
      const messages = request.msgs ?? []
      assert.ok(messages.length <= 7)
      const bytes = messages.reduce((sum, { body }) => sum + body.length, 0)
      assert.ok(bytes <= 1_000 || messages.length === 1)
    }
    assert.equal(service.mostInFlight.get('publish'), 3)
  })

  test('an array stays together where it fits into one batch', async () => {
    const { producer, publishes } = setUp({ maxBatchMessages: 10 })
    await Promise.all([producer.publish('orders', bodies(6)), producer.publish('orders', bodies(6))])
    assert.deepEqual(
      publishes().map(({ request }) => request.msgs?.length),
      [6, 6],
    )
  })

  test('an array larger than a batch is divided, and its results come back in its order', async () => {
    const { producer, service } = setUp({ maxBatchMessages: 10 })
    const results = await producer.publish('orders', bodies(95))
    const stored = service.log.stored('orders')
    const read = results.map(
      ({ queueId, offset }) => stored.find(at => at.queueId === queueId && at.offset === offset)?.message.body,
    )
    assert.deepEqual(
      read,
      bodies(95).map(({ body }) => body),
    )
  })

  test('an empty array needs no request', async () => {
    const { producer, service } = setUp()
    assert.deepEqual(await producer.publish('orders', []), [])
    assert.equal(service.requests.length, 0)
  })

  test('topics do not wait for each other', async () => {
    const { producer, service, clock } = setUp()
    service.log.createTopic('slow', 1)
    service.onRequest = (operation, { topicName }) =>
      operation === 'publish' && topicName === 'slow' ? { kind: 'delay', ms: 1_000 } : undefined
    const slow = producer.publish('slow', { body: 'a' })
    await producer.publish('orders', { body: 'b' })
    await clock.advance(1_000)
    await slow
  })
})

suite('queues', () => {
  test('a producer gives its requests to the queues in turn, so that every consumer has something to do', async () => {
    const { producer, publishes } = setUp({ queues: 16 })
    for (const message of bodies(32)) await producer.publish('orders', message)
    const asked = publishes().map(({ request }) => request.queueId)
    assert.equal(new Set(asked.slice(0, 16)).size, 16)
    assert.deepEqual(asked.slice(16), asked.slice(0, 16))
  })

  test('producers begin with different queues', async () => {
    const queueIds = await Promise.all(
      [1, 2, 3, 4, 5, 6, 7, 8].map(
        async seed => (await setUp({ queues: 16, seed }).producer.publish('orders', { body: 'a' })).queueId,
      ),
    )
    assert.ok(new Set(queueIds).size > 3, String(queueIds))
  })

  test('a producer stays for a while in the queue to which the service moved it', async () => {
    const { producer, publishes, meet, clock } = setUp()
    const { queueId } = await producer.publish('orders', { body: 'a' })
    // Two further on: neither the last one nor the next in turn.
    const other = ((queueId + 1) % 4) + 1
    meet({
      kind: 'answer',
      answer: { suc: true, sleepTime: 0, offsets: [{ first: 0, count: 1, queueId: other, offset: 9 }] },
    })
    assert.deepEqual(await producer.publish('orders', { body: 'b' }), { queueId: other, offset: 9 })
    await producer.publish('orders', { body: 'c' })
    await clock.advance(9_000)
    await producer.publish('orders', { body: 'd' })
    await clock.advance(2_000)
    await producer.publish('orders', { body: 'e' })
    const asked = publishes().map(({ request }) => request.queueId)
    assert.deepEqual(asked.slice(2), [other, other, (other % 4) + 1])
  })

  test('the queues of a topic are asked for once in 20 seconds, and only while it publishes', async () => {
    const { producer, service, clock } = setUp()
    for (let second = 0; second < 50; second++) {
      await producer.publish('orders', { body: 'a' })
      await clock.advance(1_000)
    }
    assert.equal(service.count('getTopicQueueIds'), 3)
    await clock.advance(3_600_000)
    assert.equal(service.count('getTopicQueueIds'), 3)
  })

  test('a queue that is no longer writable is left', async () => {
    const { producer, service, clock, publishes } = setUp({ queues: 2 })
    const { queueId } = await producer.publish('orders', { body: 'a' })
    const other = queueId === 1 ? 2 : 1
    service.onRequest = operation =>
      operation === 'getTopicQueueIds'
        ? { kind: 'answer', answer: { suc: true, topicQueues: { orders: [other] } } }
        : undefined
    await clock.advance(20_000)
    await producer.publish('orders', { body: 'b' })
    await settle()
    await producer.publish('orders', { body: 'c' })
    assert.equal(publishes().at(-1)?.request.queueId, other)
  })

  test('publishing goes on with the known queues when they cannot be asked for', async () => {
    const { producer, service, clock } = setUp()
    await producer.publish('orders', { body: 'a' })
    service.onRequest = operation => (operation === 'getTopicQueueIds' ? { kind: 'unreachable' } : undefined)
    await clock.advance(25_000)
    await producer.publish('orders', { body: 'b' })
  })

  test('an unknown topic is refused in the words of the service', async () => {
    const { producer } = setUp()
    const error = await failureOf(producer.publish('nowhere', { body: 'a' }))
    assert.match(error.message, /topic_nowhere_is_not_exist!/)
    assert.deepEqual([error.code, error.outcome, error.retryable], ['refused', 'not_stored', false])
  })
})

suite('retries', () => {
  test('a publish whose answer is lost is stored once', async () => {
    const { producer, clock, meet, service, publishes } = setUp()
    meet({ kind: 'lose_answer' }, { kind: 'lose_answer' }, { kind: 'lose_request' })
    const published = producer.publish('orders', bodies(3))
    await clock.advance(1_000)
    const results = await published
    assert.deepEqual(
      service.log.stored('orders').map(({ queueId, offset }) => ({ queueId, offset })),
      results,
    )
    assert.deepEqual(
      publishes().map(({ request }) => request.attempt),
      [1, 2, 3, 4],
    )
    assert.equal(new Set(publishes().map(({ request }) => request.publishId)).size, 1)
  })

  test('two publishes have two publishIds', async () => {
    const { producer, publishes } = setUp()
    await producer.publish('orders', { body: 'a' })
    await producer.publish('orders', { body: 'a' })
    assert.notEqual(publishes()[0]?.request.publishId, publishes()[1]?.request.publishId)
  })

  test('a service that asks for a slower pace is given the time that it asks for', async () => {
    const { producer, clock, meet, publishes } = setUp()
    meet({ kind: 'answer', answer: { suc: false, sleepTime: 700 } })
    const published = producer.publish('orders', { body: 'a' })
    await clock.advance(699)
    assert.equal(publishes().length, 1)
    await clock.advance(1)
    await published
  })

  test('Retry-After is respected', async () => {
    const { producer, clock, meet, publishes } = setUp()
    meet({ kind: 'fail', error: new PmqClientError('throttled', 'slower', { status: 429, retryAfterMs: 3_000 }) })
    const published = producer.publish('orders', { body: 'a' })
    await clock.advance(2_999)
    assert.equal(publishes().length, 1)
    await clock.advance(1)
    await published
  })

  for (const [what, slower] of [
    ['sleepTime', { kind: 'answer', answer: { suc: false, sleepTime: 2_000 } }],
    [
      'Retry-After',
      { kind: 'fail', error: new PmqClientError('throttled', 'slower', { status: 429, retryAfterMs: 2_000 }) },
    ],
  ] satisfies [string, Fault][]) {
    test(`a pause that the service asks for by ${what} makes no later one longer, nor that of another topic`, async () => {
      const { producer, clock, service, publishes } = setUp()
      service.log.createTopic('other', 1)
      service.onRequest = (operation, { topicName }) =>
        operation !== 'publish' || topicName === 'other'
          ? undefined
          : publishes().length <= 10
            ? slower
            : { kind: 'unreachable' }
      const failed = failureOf(producer.publish('orders', { body: 'a' }))
      await clock.advance(500)
      const other = await producer.publish('other', { body: 'b' })
      assert.deepEqual(other, { queueId: 5, offset: 1 })
      await clock.advance(19_600)
      const ofOrders = () => publishes().filter(({ request }) => request.topicName === 'orders')
      const times = ofOrders().map(({ atMs }) => atMs)
      assert.deepEqual(times.slice(0, 10), [0, 2_000, 4_000, 6_000, 8_000, 10_000, 12_000, 14_000, 16_000, 18_000])
      assert.ok(times.length > 11, 'the first pauses behind them are of milliseconds')
      await clock.advance(10_000)
      assert.equal((await failed).code, 'deadline_exceeded')
    })
  }

  test('a pause that the service asks for ends no later than the publish', async () => {
    const { producer, clock, meet } = setUp({ publishTimeoutMs: 5_000 })
    meet({ kind: 'fail', error: new PmqClientError('throttled', 'slower', { status: 429, retryAfterMs: 60_000 }) })
    const failed = failureOf(producer.publish('orders', { body: 'a' }))
    await clock.advance(5_000)
    assert.deepEqual([(await failed).code, (await failed).outcome], ['deadline_exceeded', 'not_stored'])
  })

  test('as long as nothing can be stored every attempt is as the first, which the service need not look for', async () => {
    const { producer, clock, meet, publishes } = setUp()
    const throttled = new PmqClientError('throttled', 'slower', { status: 429 })
    meet({ kind: 'fail', error: throttled }, { kind: 'unreachable' }, { kind: 'lose_request' }, { kind: 'unreachable' })
    const published = producer.publish('orders', { body: 'a' })
    await clock.advance(5_000)
    await published
    const sent = publishes().map(({ request }) => request)
    assert.deepEqual(
      sent.map(({ attempt }) => attempt),
      [1, 1, 1, 2, 3],
    )
    assert.deepEqual(
      [sent[2]?.attemptAgeMs, sent[3]?.queueId, sent[4]?.queueId],
      [0, sent[2]?.queueId, sent[2]?.queueId],
    )
  })

  test('every retry is told as an event', async () => {
    const { producer, clock, meet, events } = setUp()
    meet({ kind: 'unreachable' })
    const published = producer.publish('orders', { body: 'a' })
    await clock.advance(1_000)
    await published
    const [event] = events
    assert.ok(event?.type === 'request_failed' && event.operation === 'publish')
    assert.equal(event.error.code, 'unreachable')
  })

  test('a definite refusal is not repeated', async () => {
    const { producer, meet, publishes } = setUp()
    meet({ kind: 'fail', error: new PmqClientError('payload_too_large', 'too large', { status: 413 }) })
    const error = await failureOf(producer.publish('orders', { body: 'a' }))
    assert.deepEqual([error.code, error.outcome, publishes().length], ['payload_too_large', 'not_stored', 1])
    assert.ok(error.cause instanceof PmqClientError)
  })

  test('a refusal behind a lost answer leaves the outcome unknown', async () => {
    const { producer, clock, meet } = setUp()
    meet(
      { kind: 'lose_answer' },
      { kind: 'fail', error: new PmqClientError('unexpected_status', '403', { status: 403 }) },
    )
    const failed = failureOf(producer.publish('orders', { body: 'a' }))
    await clock.advance(1_000)
    assert.equal((await failed).outcome, 'unknown')
  })

  test('messages that the service could not store are rejected with its words, the others are not', async () => {
    const { producer, service } = setUp({ queues: 2 })
    service.refuse = queueId => (queueId === 2 ? 'queue 2 is full' : undefined)
    const [even, odd] = await Promise.allSettled([
      producer.publish('orders', { body: 'a', key: 'd' }),
      producer.publish('orders', { body: 'b', key: 'e' }),
    ])
    assert.equal(even?.status, 'fulfilled')
    assert.ok(odd?.status === 'rejected' && odd.reason instanceof PublishError)
    assert.match(odd.reason.message, /queue 2 is full/)
    assert.equal(odd.reason.outcome, 'not_stored')
  })

  test('an array of which a part failed is rejected with what became of each', async () => {
    const { producer, service } = setUp({ queues: 2 })
    service.refuse = queueId => (queueId === 2 ? 'queue 2 is full' : undefined)
    const keys = ['d', 'e', 'd']
    const error = await failureOf(
      producer.publish(
        'orders',
        keys.map(key => ({ body: key, key })),
      ),
    )
    assert.match(error.message, /1 of 3 messages failed: .*queue 2 is full/)
    assert.deepEqual(error.results?.[0], { queueId: 1, offset: 1 })
    assert.ok(error.results?.[1] instanceof PublishError)
    assert.deepEqual(error.results?.[2], { queueId: 1, offset: 2 })
  })

  test('what an answer that asks to wait has stored already is not lost at the deadline', async () => {
    const { producer, clock, service } = setUp({ publishTimeoutMs: 1_000 })
    const offsets = [
      { first: 0, count: 1, queueId: 2, offset: 5 },
      { first: 1, count: 1, error: 'slower' },
    ]
    service.onRequest = operation =>
      operation === 'publish' ? { kind: 'answer', answer: { suc: false, sleepTime: 400, offsets } } : undefined
    const failed = failureOf(producer.publish('orders', bodies(2)))
    await clock.advance(1_000)
    const { results } = await failed
    assert.deepEqual(results?.[0], { queueId: 2, offset: 5 })
    assert.ok(results?.[1] instanceof PublishError)
    assert.equal(results[1].outcome, 'unknown')
  })

  test('an answer that does not say where a message is counts as unknown', async () => {
    const { producer, meet } = setUp()
    meet({ kind: 'answer', answer: { suc: true, sleepTime: 0 } })
    const error = await failureOf(producer.publish('orders', { body: 'a' }))
    assert.deepEqual([error.code, error.outcome], ['bad_answer', 'unknown'])
  })

  test('an answer that tells of messages that were not sent is none', async () => {
    const { producer, clock, meet, service } = setUp()
    const offsets = [{ first: -1_000_000_000, count: 2_000_000_000, queueId: 1, offset: 1 }]
    meet({ kind: 'answer', answer: { suc: true, sleepTime: 0, offsets } })
    const published = producer.publish('orders', { body: 'a' })
    await clock.advance(1_000)
    await published
    assert.equal(service.log.stored('orders').length, 1)
  })

  test('of five sends of a key one fails: its caller alone is told, and the others are stored in order', async () => {
    const { producer, meet, service } = setUp({ maxBatchMessages: 1 })
    const no = { kind: 'fail', error: new PmqClientError('bad_request', 'no', { status: 400 }) } as const
    meet(undefined, undefined, no)
    const settled = await Promise.allSettled(
      bodies(5).map(({ body }) => producer.publish('orders', { body, key: 'k' })),
    )
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
    )
    assert.deepEqual(
      service.log.stored('orders').map(({ message }) => message.body),
      ['m0', 'm1', 'm3', 'm4'],
    )
    await producer.close()
  })

  test('one failed send of a key lets the next ones of the key through', async () => {
    const { producer, meet, service } = setUp()
    meet(undefined, { kind: 'fail', error: new PmqClientError('bad_request', 'no', { status: 400 }) })
    await producer.publish('orders', { body: 'a', key: 'k' })
    await failureOf(producer.publish('orders', { body: 'b', key: 'k' }))
    await producer.publish('orders', { body: 'c', key: 'k' })
    assert.deepEqual(
      service.log.stored('orders').map(({ message }) => message.body),
      ['a', 'c'],
    )
  })
})

suite('deadline', () => {
  test('a publish that is never answered is given up at publishTimeoutMs, its outcome unknown', async () => {
    const { producer, clock, service } = setUp({ publishTimeoutMs: 25_000 })
    service.onRequest = operation => (operation === 'publish' ? { kind: 'hang' } : undefined)
    const failed = failureOf(producer.publish('orders', { body: 'a' }))
    await clock.advance(24_999)
    assert.equal(await Promise.race([failed, settle()]), undefined)
    await clock.advance(1)
    const error = await failed
    assert.deepEqual([error.code, error.outcome], ['deadline_exceeded', 'unknown'])
    assert.match(error.message, /25000 ms; it may be stored or not/)
    assert.ok(error.cause instanceof PmqClientError && error.cause.code === 'timeout')
  })

  test('a publish that could never be sent is certainly not stored', async () => {
    const { producer, clock, service } = setUp({ publishTimeoutMs: 5_000 })
    service.onRequest = () => ({ kind: 'unreachable' })
    const failed = failureOf(producer.publish('orders', { body: 'a' }))
    await clock.advance(5_000)
    assert.equal((await failed).outcome, 'not_stored')
  })

  test('each publish has its own deadline, also behind a request that does not end', async () => {
    const { producer, clock, service } = setUp({ publishTimeoutMs: 10_000, maxInFlight: 1 })
    service.onRequest = operation => (operation === 'publish' ? { kind: 'hang' } : undefined)
    const settledAt: number[] = []
    for (let index = 0; index < 5; index++) {
      void failureOf(producer.publish('orders', { body: `${index}` })).then(() => settledAt.push(clock.monotonic()))
      await clock.advance(1_000)
    }
    await clock.advance(20_000)
    assert.deepEqual(settledAt, [10_000, 11_000, 12_000, 13_000, 14_000])
  })

  test('the deadline of one does not end the request for the others', async () => {
    const { producer, clock, meet, service } = setUp({ publishTimeoutMs: 10_000, maxInFlight: 1 })
    meet({ kind: 'delay', ms: 5_000 }, { kind: 'delay', ms: 7_000 })
    const first = producer.publish('orders', { body: 'first' })
    await settle()
    const early = failureOf(producer.publish('orders', { body: 'early' }))
    await clock.advance(4_000)
    const late = producer.publish('orders', { body: 'late' })
    await clock.advance(6_001)
    assert.equal((await early).outcome, 'unknown')
    await clock.advance(3_000)
    await Promise.all([first, late])
    assert.deepEqual(
      service.log.stored('orders').map(({ message }) => message.body),
      ['first', 'early', 'late'],
    )
    assert.equal(service.count('publish'), 2)
  })

  /** Two publishes that wait for the same request, which is made 5 s after the first of them, and 1 s after the other. */
  async function gatherTwo({ meet, producer, clock }: ReturnType<typeof setUp>, ...faults: Fault[]) {
    const settledAt = { early: 0, late: 0 }
    meet({ kind: 'delay', ms: 5_000 }, ...faults)
    const first = producer.publish('orders', { body: 'first' })
    await settle()
    const noteTime = (body: 'early' | 'late') => () => {
      settledAt[body] = clock.monotonic()
    }
    const early = producer.publish('orders', { body: 'early' }).finally(noteTime('early'))
    early.catch(() => undefined)
    await clock.advance(4_000)
    const late = producer.publish('orders', { body: 'late' }).finally(noteTime('late'))
    late.catch(() => undefined)
    await clock.advance(1_000)
    await first
    return { early, late, settledAt }
  }

  test('of two in a request that is not answered each is given up in its time, and nothing is sent again', async () => {
    const all = setUp({ publishTimeoutMs: 10_000, maxInFlight: 1 })
    const { early, late, settledAt } = await gatherTwo(all, { kind: 'hang' })
    await all.clock.advance(4_999)
    assert.deepEqual(settledAt, { early: 0, late: 0 })
    await all.clock.advance(1)
    assert.equal((await failureOf(early)).outcome, 'unknown')
    await all.clock.advance(10_000)
    assert.equal((await failureOf(late)).outcome, 'unknown')
    assert.deepEqual(settledAt, { early: 10_000, late: 14_000 })
    assert.equal(all.service.count('publish'), 2)
  })

  test('what is given up while no attempt can have stored it is never stored', async () => {
    const all = setUp({ publishTimeoutMs: 10_000, maxInFlight: 1 })
    const slower = new PmqClientError('throttled', 'slower', { status: 429, retryAfterMs: 6_000 })
    const { early, late, settledAt } = await gatherTwo(all, { kind: 'fail', error: slower })
    await all.clock.advance(10_000)
    const { outcome, message } = await failureOf(early)
    assert.equal(outcome, 'not_stored')
    assert.match(message, /it is not stored\. Attempts: 1/)
    await late
    // In time also while the service is left in peace, and that is not cut short.
    assert.deepEqual(settledAt, { early: 10_000, late: 11_000 })
    const sent = all.publishes().map(({ request }) => request.msgs?.map(({ body }) => body))
    assert.deepEqual(sent, [['first'], ['early', 'late'], ['late']])
    assert.deepEqual(
      all.service.log.stored('orders').map(({ message }) => message.body),
      ['first', 'late'],
    )
  })

  test('what may be stored already stays in the request when it is given up', async () => {
    const all = setUp({ publishTimeoutMs: 10_000, maxInFlight: 1 })
    const failed = new PmqClientError('unavailable', '503', { status: 503, retryAfterMs: 6_000 })
    const { early, late } = await gatherTwo(all, { kind: 'fail', error: failed })
    await all.clock.advance(10_000)
    assert.equal((await failureOf(early)).outcome, 'unknown')
    await late
    const sent = all.publishes().map(({ request }) => request.msgs?.map(({ body }) => body))
    assert.deepEqual(sent, [['first'], ['early', 'late'], ['early', 'late']])
  })

  test('an attempt that had all the time is the last one, also when its timer fires early', async () => {
    const { clock, service } = setUp()
    service.onRequest = operation => (operation === 'publish' ? { kind: 'hang' } : undefined)
    const { producer } = createClient({
      transport: (path, request, options) =>
        service.transport(path, request, { ...options, timeoutMs: options.timeoutMs - 1.5 }),
      clock,
      random: () => 0,
    })
    const failed = failureOf(producer({ publishTimeoutMs: 5_000 }).publish('orders', { body: 'a' }))
    await clock.advance(5_000)
    assert.equal((await failed).outcome, 'unknown')
    assert.equal(service.count('publish'), 1)
  })

  test('a publish is given up in time while the queues of its topic are asked for', async () => {
    const { producer, clock, service } = setUp({ publishTimeoutMs: 12_000 })
    service.onRequest = () => ({ kind: 'hang' })
    const failed = failureOf(producer.publish('orders', { body: 'a' }))
    await clock.advance(12_000)
    const error = await failed
    assert.equal(error.outcome, 'not_stored')
    assert.match(error.message, /It was never sent/)
    await clock.advance(10_000)
    assert.equal(service.count('publish'), 0)
    assert.equal(clock.sleeping, 0)
  })
})

suite('bounded memory', () => {
  test('with whenFull wait, a publish waits for room and is then sent, in order', async () => {
    const { producer, clock, service } = setUp({
      queues: 1,
      maxBufferedMessages: 10,
      maxBatchMessages: 10,
      maxInFlight: 1,
    })
    service.onRequest = operation => (operation === 'publish' ? { kind: 'delay', ms: 10 } : undefined)
    const all = bodies(35).map(message => producer.publish('orders', message))
    await clock.advance(1_000)
    await Promise.all(all)
    assert.deepEqual(
      service.log.stored('orders').map(({ message }) => message.body),
      bodies(35).map(({ body }) => body),
    )
  })

  test('with whenFull reject, a publish over the bound is rejected and the others are not', async () => {
    const { producer, clock, service } = setUp({ maxBufferedMessages: 10, maxBatchMessages: 10, whenFull: 'reject' })
    service.onRequest = () => ({ kind: 'delay', ms: 10 })
    const results = Promise.allSettled(bodies(15).map(message => producer.publish('orders', message)))
    await clock.advance(1_000)
    const rejected = (await results).filter(result => result.status === 'rejected')
    assert.equal(rejected.length, 5)
    for (const { reason } of rejected) assert.deepEqual([reason.code, reason.outcome], ['buffer_full', 'not_stored'])
    service.onRequest = () => undefined
    await producer.publish('orders', { body: 'room again' })
  })

  test('the bytes count too', async () => {
    const { producer, service, clock } = setUp({ maxBufferedBytes: 10_000, maxBatchBytes: 10_000, whenFull: 'reject' })
    service.onRequest = () => ({ kind: 'delay', ms: 10 })
    const results = Promise.allSettled(bodies(4).map(() => producer.publish('orders', { body: 'x'.repeat(3_000) })))
    await clock.advance(100)
    assert.deepEqual(
      (await results).map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'fulfilled', 'rejected'],
    )
  })

  test('an array that could never fit is refused at once', async () => {
    const { producer } = setUp({ maxBufferedMessages: 10, maxBatchMessages: 10 })
    const error = await failureOf(producer.publish('orders', bodies(11)))
    assert.equal(error.code, 'buffer_full')
    assert.match(error.message, /11 messages.*maxBufferedMessages is 10/)
  })

  test('a publish that waits for room is given up at its deadline', async () => {
    const { producer, clock, service } = setUp({ maxBufferedMessages: 1, maxBatchMessages: 1, publishTimeoutMs: 5_000 })
    service.onRequest = operation => (operation === 'publish' ? { kind: 'hang' } : undefined)
    const first = failureOf(producer.publish('orders', { body: 'a' }))
    await clock.advance(10)
    const waiting = failureOf(producer.publish('orders', { body: 'b' }))
    await clock.advance(5_000)
    await first
    assert.equal((await waiting).code, 'deadline_exceeded')
  })
})

suite('flush and close', () => {
  test('flush waits for what was published before it and not for what comes after', async () => {
    const { producer, clock, meet } = setUp({ maxInFlight: 4 })
    meet({ kind: 'delay', ms: 10 }, { kind: 'delay', ms: 10_000 })
    let isFirstDone = false
    void producer.publish('orders', { body: 'a' }).then(() => {
      isFirstDone = true
    })
    const flushed = producer.flush().then(() => isFirstDone)
    await settle()
    const later = producer.publish('orders', { body: 'b' })
    await clock.advance(200)
    assert.equal(await flushed, true)
    await clock.advance(10_000)
    await later
  })

  test('flush does not reject when a publish fails', async () => {
    const { producer } = setUp()
    const failed = failureOf(producer.publish('nowhere', { body: 'a' }))
    await producer.flush()
    await failed
  })

  test('flush sends what lingers at once', async () => {
    const { producer, clock } = setUp({ lingerMs: 1_000 })
    const published = producer.publish('orders', { body: 'a' })
    await settle()
    await producer.flush()
    await published
    assert.equal(clock.monotonic(), 0)
  })

  test('close settles a thousand publishes that nobody awaits', async () => {
    const { producer, service } = setUp()
    for (const message of bodies(1_000)) void producer.publish('orders', message)
    await producer.close()
    assert.equal(service.log.stored('orders').length, 1_000)
  })

  test('close waits for publishes that wait for room', async () => {
    const { producer, service } = setUp({ maxBufferedMessages: 10, maxBatchMessages: 10 })
    for (const message of bodies(100)) void producer.publish('orders', message)
    await producer.close()
    assert.equal(service.log.stored('orders').length, 100)
  })

  test('a closed producer accepts nothing; closing it twice at once is one closing', async () => {
    const { producer } = setUp()
    await Promise.all([producer.close(), producer.close()])
    await producer.close()
    const error = await failureOf(producer.publish('orders', { body: 'a' }))
    assert.deepEqual([error.code, error.outcome], ['closed', 'not_stored'])
  })

  test('close sends what waits for room at once, however long messages may linger', async () => {
    const { producer, service, clock } = setUp({ maxBufferedMessages: 10, maxBatchMessages: 10, lingerMs: 5_000 })
    for (const message of bodies(95)) void producer.publish('orders', message)
    await producer.close()
    assert.equal(service.log.stored('orders').length, 95)
    assert.equal(clock.monotonic(), 0)
  })

  test('close with a time rejects each publish that is not settled by then, and says what is known of it', async () => {
    const { producer, client, service, clock } = setUp({ maxBufferedMessages: 4, maxBatchMessages: 2, maxInFlight: 1 })
    service.onRequest = operation => (operation === 'publish' ? { kind: 'hang' } : undefined)
    // Two are sent, two are gathered behind them, two wait for room.
    const failures = bodies(6).map(message => failureOf(producer.publish('orders', message)))
    await settle()
    const closed = producer.close({ timeoutMs: 1_000 })
    await clock.advance(999)
    assert.equal(await Promise.race([closed.then(() => 'closed'), settle()]), undefined)
    await clock.advance(1)
    await closed
    const told = (await Promise.all(failures)).map(({ code, outcome, message }) => [
      code,
      outcome,
      /was never sent/.test(message),
    ])
    const sent = ['closed', 'unknown', false]
    const unsent = ['closed', 'not_stored', true]
    assert.deepEqual(told, [sent, sent, unsent, unsent, unsent, unsent])
    assert.equal(service.count('publish'), 1)
    await client.close()
    assert.equal(clock.sleeping, 0)
  })

  test('close with a time ends pauses and questions too, and a later call may shorten that of an earlier one', async () => {
    for (const fault of [{ kind: 'hang' }, { kind: 'unreachable' }] satisfies Fault[]) {
      const { client, service, clock } = setUp()
      service.onRequest = () => fault
      const failed = failureOf(client.publish('orders', { body: 'a' }))
      await clock.advance(3_000)
      const producer = client.producer()
      const alsoFailed = failureOf(producer.publish('orders', { body: 'b' }))
      void producer.close()
      void producer.close({ timeoutMs: 20_000 })
      const closed = Promise.all([producer.close({ timeoutMs: 0 }), client.close({ timeoutMs: 500 })])
      await clock.advance(500)
      await closed
      for (const error of [await failed, await alsoFailed]) {
        assert.deepEqual([error.code, error.outcome], ['closed', 'not_stored'])
      }
      assert.equal(clock.sleeping, 0)
    }
  })

  test('close with a time waits no longer than it has to', async () => {
    const { producer, service, clock } = setUp()
    for (const message of bodies(10)) void producer.publish('orders', message)
    await producer.close({ timeoutMs: 10_000 })
    assert.equal(service.log.stored('orders').length, 10)
    await settle()
    assert.deepEqual([clock.monotonic(), clock.sleeping], [0, 0])
  })

  test('nothing waits for a time to come when all is settled', async () => {
    const { client, producer, clock, meet } = setUp()
    meet({ kind: 'delay', ms: 10 }, { kind: 'delay', ms: 10 })
    const first = producer.publish('orders', { body: 'a' })
    await settle()
    const second = producer.publish('orders', { body: 'b' })
    await clock.advance(20)
    await Promise.all([first, second])
    await client.close()
    await settle()
    assert.equal(clock.sleeping, 0)
  })

  test('the client closes its producers, and publishes by a shared one', async () => {
    const { client, producer, service } = setUp()
    await client.publish('orders', { body: 'a' })
    await client.close()
    assert.equal((await failureOf(client.publish('orders', { body: 'b' }))).code, 'closed')
    assert.equal((await failureOf(producer.publish('orders', { body: 'c' }))).code, 'closed')
    assert.equal(service.log.stored('orders').length, 1)
    assert.throws(() => client.producer(), { code: 'closed' })
  })
})

suite('order and faults together', () => {
  for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
    test(`each message is stored once where its caller was told, and keys keep their order (seed ${seed})`, async () => {
      const chance = seededRandom(seed)
      const { producer, service, clock, meet: _ } = setUp({ maxBatchMessages: 16, maxInFlight: 3, seed })
      service.onRequest = operation => {
        const roll = chance()
        if (roll < 0.1) return { kind: 'lose_answer' }
        if (roll < 0.2) return { kind: 'lose_request' }
        if (roll < 0.25) return { kind: 'fail', error: new PmqClientError('unavailable', '503', { status: 503 }) }
        if (roll < 0.3 && operation === 'publish') return { kind: 'answer', answer: { suc: false, sleepTime: 50 } }
        return { kind: 'delay', ms: Math.floor(chance() * 30) }
      }
      const told: { body: string; queueId: number; offset: number }[] = []
      const all: Promise<unknown>[] = []
      for (let index = 0; index < 400; index++) {
        const key = chance() < 0.5 ? `k${Math.floor(chance() * 5)}` : undefined
        const message = { body: `${index}`, key }
        all.push(producer.publish('orders', message).then(at => told.push({ body: message.body, ...at })))
        if (chance() < 0.2) await clock.advance(Math.floor(chance() * 20))
      }
      await clock.advance(25_000)
      await Promise.all(all)

      const stored = service.log
        .stored('orders')
        .map(({ message, ...at }) => ({ body: message.body, ...at, key: message.key }))
      const byBody = (a: { body: string }, b: { body: string }) => Number(a.body) - Number(b.body)
      assert.deepEqual(stored.map(({ key: _, ...at }) => at).sort(byBody), told.sort(byBody))
      for (const key of ['k0', 'k1', 'k2', 'k3', 'k4']) {
        const ofKey = stored.filter(message => message.key === key)
        assert.equal(new Set(ofKey.map(({ queueId }) => queueId)).size, 1)
        const numbers = ofKey.map(({ body }) => Number(body))
        assert.deepEqual(
          numbers,
          numbers.toSorted((a, b) => a - b),
        )
      }
    })
  }
})
