import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import type { Store } from '../../core/store.ts'
import { StoreError } from '../../core/store.ts'
import { base, createTopic, pull } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
afterEach(() => service.close())

const publish = (request: object) => service.call('publish', { ...base, topicName: 't1', ...request })
const to = (queueId: number, strictMode?: number) => ({
  partitionInfo: { queueId, ...(strictMode !== undefined && { strictMode }) },
})
const bodiesOf = async (queueId: number) => (await pull(service, queueId, 0, 1000)).map(message => message.body)

suite('publish', () => {
  beforeEach(() => {
    service = openService()
  })

  test('answers with suc and sleepTime 0, and says where the messages are', async () => {
    const [queueId] = await createTopic(service, 't1')
    const { time, serverIp, ...answer } = await publish({ msgs: [{ body: 'a' }, { body: 'b' }] })
    assert.deepEqual(answer, { suc: true, sleepTime: 0, offsets: [{ first: 0, count: 2, queueId, offset: 1 }] })
  })

  test('puts the messages of one request into one queue, in order', async () => {
    await createTopic(service, 't1', 8)
    const { offsets } = await publish({ msgs: Array.from({ length: 20 }, (_, i) => ({ body: `${i}` })) })
    assert.equal(offsets?.length, 1)
    assert.deepEqual(
      await bodiesOf(offsets[0]?.queueId ?? 0),
      Array.from({ length: 20 }, (_, i) => `${i}`),
    )
  })

  test('numbers the messages of a queue 1, 2, 3, … over all requests', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    for (const count of [1, 3, 1]) await publish({ msgs: Array.from({ length: count }, () => ({ body: 'x' })) })
    assert.deepEqual(
      (await pull(service, queueId, 0, 50)).map(message => message.id),
      [1, 2, 3, 4, 5],
    )
  })

  test('puts messages of one key into one queue', async () => {
    await createTopic(service, 't1', 8)
    const places = new Set<number | undefined>()
    for (let i = 0; i < 10; i++) {
      const { offsets } = await publish({ msgs: [{ body: 'a', key: 'k' }] })
      places.add(offsets?.[0]?.queueId)
    }
    assert.equal(places.size, 1)
  })

  test('tells of a request that spreads over queues run by run', async () => {
    const [first = 0, second = 0] = await createTopic(service, 't1', 2)
    const msgs = [first, first, second, first].map((queueId, i) => ({ body: `${i}`, ...to(queueId) }))
    const { offsets } = await publish({ msgs })
    assert.deepEqual(offsets, [
      { first: 0, count: 2, queueId: first, offset: 1 },
      { first: 2, count: 1, queueId: second, offset: 1 },
      { first: 3, count: 1, queueId: first, offset: 3 },
    ])
  })

  test('stores a publishId once, however often it is sent', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    const request = { msgs: [{ body: 'a' }], publishId: 'p-1' }
    const { offsets } = await publish({ ...request, attempt: 1 })
    const again = await publish({ ...request, attempt: 2 })
    assert.deepEqual([again.suc, again.offsets], [true, offsets])
    assert.deepEqual(await bodiesOf(queueId), ['a'])
  })

  test('takes null for absent in every field that may be absent', async () => {
    await createTopic(service, 't1')
    const nothing = { id: null, tag: null, bizId: null, head: null, traceId: null, retryCount: null, key: null }
    const msgs = [{ body: 'a', partitionInfo: null, ...nothing }]
    const options = { token: null, synFlag: null, publishId: null, attempt: null, attemptAgeMs: null, queueId: null }
    const { suc } = await publish({ lan: null, sdkVersion: null, clientIp: null, ...options, msgs })
    assert.equal(suc, true)
  })

  test('leaves an entry of a head out that is null', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    await publish({ msgs: [{ body: 'a', head: { a: null, b: '1' } }] })
    assert.deepEqual((await pull(service, queueId, 0, 50))[0]?.head, { b: '1' })
  })

  test('ignores fields that it does not know, also within messages', async () => {
    await createTopic(service, 't1')
    const { suc } = await publish({ futureField: { a: [1] }, msgs: [{ body: 'a', topicName: 't9', x: null }] })
    assert.equal(suc, true)
  })

  const refusals: [string, unknown, string][] = [
    ['no body', '', 'request is null!'],
    ['the body null', 'null', 'request is null!'],
    ['no messages', { topicName: 't1' }, 'topic_t1_msg_is_null!'],
    ['messages that are null', { topicName: 't1', msgs: null }, 'topic_t1_msg_is_null!'],
    ['an empty list of messages', { topicName: 't1', msgs: [] }, 'topic_t1_msg_is_null!'],
    ['an unknown topic', { topicName: 't9', msgs: [{ body: '' }] }, 'topic_t9_is_not_exist!'],
    ['a topic that differs in case', { topicName: 'T1', msgs: [{ body: '' }] }, 'topic_T1_is_not_exist!'],
    ['what no topic can be called', { topicName: 't 1', msgs: [{ body: '' }] }, 'topic_t 1_is_not_exist!'],
  ]
  for (const [what, request, msg] of refusals) {
    test(`refuses ${what}, for good`, async () => {
      await createTopic(service, 't1')
      const { time, serverIp, ...answer } = await service.call('publish', request)
      assert.deepEqual(answer, { suc: false, msg, sleepTime: 0 })
    })
  }

  test('refuses a topic without queues', async () => {
    await service.core.store.createTopic({ name: 't1', topicId: 1, retentionMs: 3_600_000, createdAtMs: 0 }, [])
    assert.equal((await publish({ msgs: [{ body: 'a' }] })).msg, 'topic1_t1_and_has_no_queue!')
  })

  test('refuses a topic whose queues are all read-only', async () => {
    const queue = { topicName: 't1', queueId: 1, readOnlySinceMs: 1, checkpoint: 1 }
    await service.core.store.createTopic({ name: 't1', topicId: 1, retentionMs: 3_600_000, createdAtMs: 0 }, [queue])
    assert.equal((await publish({ msgs: [{ body: 'a' }] })).msg, 'topic_t1_and_has_no_queue!')
  })
})

suite('a publish that names its queues', () => {
  beforeEach(() => {
    service = openService()
  })

  test('goes to the named one', async () => {
    const queueIds = await createTopic(service, 't1', 4)
    for (const queueId of queueIds) await publish({ msgs: [{ body: `for ${queueId}`, ...to(queueId, 1) }] })
    for (const queueId of queueIds) assert.deepEqual(await bodiesOf(queueId), [`for ${queueId}`])
  })

  test('is refused for one that does not exist, by default, and names those that do', async () => {
    await createTopic(service, 't1', 2)
    const { suc, msg, sleepTime, offsets } = await publish({ msgs: [{ body: 'a', ...to(4711) }] })
    const error = 'queue 4711 is not a writable queue of topic t1; those are 1, 2'
    assert.deepEqual([suc, msg, sleepTime, offsets], [false, error, 0, [{ first: 0, count: 1, error }]])
  })

  test('goes to another than one that does not exist with strictMode 0', async () => {
    await createTopic(service, 't1', 2)
    const { suc, offsets } = await publish({ msgs: [{ body: 'a', ...to(4711, 0) }] })
    assert.deepEqual([suc, offsets?.[0]?.offset], [true, 1])
  })

  test('goes to another than the queue -1 with strictMode 0, as selectors say "any"', async () => {
    await createTopic(service, 't1')
    assert.equal((await publish({ msgs: [{ body: 'a', ...to(-1, 0) }] })).suc, true)
  })

  test('is refused for a queue of another topic', async () => {
    await createTopic(service, 't1')
    const [other = 0] = await createTopic(service, 't2')
    assert.equal((await publish({ msgs: [{ body: 'a', ...to(other, 1) }] })).suc, false)
  })

  test('stores the others when one names a queue that does not exist, and says which', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    const { suc, offsets, sleepTime } = await publish({
      msgs: [{ body: 'a', ...to(queueId) }, { body: 'b', ...to(4711) }, { body: 'c' }],
    })
    assert.equal(suc, false)
    assert.deepEqual(
      offsets?.map(run => [run.first, run.count, run.error === undefined]),
      [
        [0, 1, true],
        [1, 1, false],
        [2, 1, true],
      ],
    )
    assert.equal(sleepTime, 0, 'sending it again would store the others twice')
    assert.deepEqual((await bodiesOf(queueId)).sort(), ['a', 'c'])
  })

  test('sends only what is missing when it is sent again under its publishId', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    const msgs = [
      { body: 'a', ...to(queueId) },
      { body: 'b', ...to(4711) },
    ]
    await publish({ msgs, publishId: 'p-1', attempt: 1 })
    await publish({ msgs, publishId: 'p-1', attempt: 2 })
    assert.deepEqual(await bodiesOf(queueId), ['a'])
  })
})

suite('sleepTime', () => {
  let throttled: Set<number>
  beforeEach(() => {
    throttled = new Set()
    service = openService({ through: store => throttling(store, throttled) })
  })

  test('is above 0 when the store asks for a slower pace and nothing was stored', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    throttled.add(queueId)
    const { suc, sleepTime, msg } = await service.pass(publish({ msgs: [{ body: 'a' }] }))
    assert.equal(suc, false)
    assert.equal(msg, 'the store asks for a slower pace')
    assert.ok(sleepTime > 0 && sleepTime <= 1000 && Number.isInteger(sleepTime), `${sleepTime}`)
  })

  test('is 0 when a part was stored, since sending all again would store that part twice', async () => {
    const [first = 0, second = 0] = await createTopic(service, 't1', 2)
    throttled.add(second)
    const msgs = [
      { body: 'a', ...to(first) },
      { body: 'b', ...to(second) },
    ]
    const { suc, sleepTime } = await service.pass(publish({ msgs }))
    assert.deepEqual([suc, sleepTime], [false, 0])
  })

  test('is above 0 when a part was stored under a publishId, under which the rest may follow', async () => {
    const [first = 0, second = 0] = await createTopic(service, 't1', 2)
    throttled.add(second)
    const request = {
      msgs: [
        { body: 'a', ...to(first) },
        { body: 'b', ...to(second) },
      ],
      publishId: 'p-1',
    }
    const { sleepTime } = await service.pass(publish({ ...request, attempt: 1 }))
    assert.ok(sleepTime > 0)
    throttled.clear()
    assert.equal((await publish({ ...request, attempt: 2 })).suc, true)
    assert.deepEqual([await bodiesOf(first), await bodiesOf(second)], [['a'], ['b']])
  })

  test('is 0 when it is not known whether it was stored, and there is no publishId', async () => {
    await createTopic(service, 't1')
    const { store } = service.core
    store.appendBatch = async () => ({ outcome: 'unknown', cause: new StoreError('unavailable', 'no answer') })
    const { suc, sleepTime, msg } = await service.pass(publish({ msgs: [{ body: 'a' }] }))
    assert.deepEqual([suc, sleepTime, msg], [false, 0, '消息保存失败！'])
  })

  test('is above 0 when it is not known whether it was stored under its publishId', async () => {
    await createTopic(service, 't1')
    const { store } = service.core
    store.appendBatch = async () => ({ outcome: 'unknown', cause: new StoreError('unavailable', 'no answer') })
    const { suc, sleepTime } = await service.pass(publish({ msgs: [{ body: 'a' }], publishId: 'p-1' }))
    assert.equal(suc, false)
    assert.ok(sleepTime > 0)
  })
})

/** A store that refuses to append to some queues. */
function throttling(store: Store, queueIds: ReadonlySet<number>): Store {
  return {
    ...store,
    appendBatch: async batch => (queueIds.has(batch.queueId) ? { outcome: 'throttled' } : store.appendBatch(batch)),
  }
}
