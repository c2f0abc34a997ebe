import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { assignment, base, consume, createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

/** An answer without what every answer has. */
function withoutBase({
  time,
  serverIp,
  ...answer
}: {
  time?: number | undefined
  serverIp?: string | undefined
}): object {
  return answer
}

suite('where clients send their requests', () => {
  test('getMetaGroup tells them to keep to the URL that they have', async () => {
    const answer = await service.call('getMetaGroup', base)
    assert.deepEqual(withoutBase(answer), { suc: true, brokerMetaMode: -1, groupFlag: 0, metricUrl: '' })
  })

  test('getMetaGroup is answered before there is anything', async () => {
    assert.equal((await service.call('getMetaGroup')).suc, true)
  })

  test('getMeta tells older clients the same', async () => {
    assert.deepEqual(withoutBase(await service.call('getMeta', base)), { suc: true, brokerMetaMode: -1 })
  })
})

suite('getTopic', () => {
  const getTopic = async (request: object) => withoutBase(await service.call('getTopic', { ...base, ...request }))

  test('names the topics of a group', async () => {
    for (const name of ['t1', 't2', 't3']) await createTopic(service, name)
    await createGroup(service, 'g1', ['t2', 't1'])
    assert.deepEqual(await getTopic({ consumerGroupName: 'g1' }), { suc: true, topics: ['t1', 't2'] })
  })

  for (const consumerGroupName of ['nobody', '', null, undefined, 'no name', 'x'.repeat(100_000), '\ud800']) {
    test(`has no topics for the group ${JSON.stringify(consumerGroupName)?.slice(0, 20)}`, async () => {
      assert.deepEqual(await getTopic({ consumerGroupName }), { suc: true })
    })
  }
})

suite('getGroupTopic', () => {
  test('names the topics of several groups, and leaves unknown ones out', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await createGroup(service, 'g2', [])
    const answer = await service.call('getGroupTopic', { ...base, consumerGroupNames: ['g1', 'nobody', 'g2'] })
    assert.deepEqual(withoutBase(answer), {
      suc: true,
      groupTopics: [
        { consumerGroupName: 'g1', topics: ['t1'] },
        { consumerGroupName: 'g2', topics: [] },
      ],
    })
  })

  test('is answered with an empty list when it asks about none', async () => {
    assert.deepEqual(withoutBase(await service.call('getGroupTopic', base)), { suc: true, groupTopics: [] })
  })
})

suite('getTopicQueueIds', () => {
  const getQueues = async (topicNames: unknown) =>
    withoutBase(await service.call('getTopicQueueIds', { ...base, topicNames }))

  test('names the writable queues of topics, and leaves unknown topics out', async () => {
    const queueIds = await createTopic(service, 't1', 3)
    assert.deepEqual(await getQueues(['t1', 'nothing']), { suc: true, topicQueues: { t1: queueIds } })
  })

  test('leaves read-only queues out, and topics that have no other', async () => {
    const { store } = service.core
    const readOnly = { topicName: 't1', queueId: 7, readOnlySinceMs: 1, checkpoint: 1 }
    await createTopic(service, 't1', 1)
    await store.addQueues('t1', [readOnly])
    await store.createTopic({ name: 't2', topicId: 9, retentionMs: 3_600_000, createdAtMs: 0 }, [
      { ...readOnly, topicName: 't2', queueId: 8 },
    ])
    assert.deepEqual(await getQueues(['t1', 't2']), { suc: true, topicQueues: { t1: [1] } })
  })

  for (const none of [[], null, undefined]) {
    test(`has no topicQueues when it asks about ${JSON.stringify(none)}`, async () => {
      assert.deepEqual(await getQueues(none), { suc: true })
    })
  }

  test('has topicQueues that are empty when it asks about unknown topics alone', async () => {
    assert.deepEqual(await getQueues(['nothing', '', '\ud800', 'x'.repeat(100_000)]), { suc: true, topicQueues: {} })
  })

  for (const name of ['__proto__', 'constructor', 'toString']) {
    test(`names the queues of a topic called ${name}`, async () => {
      const queueIds = await createTopic(service, name, 2)
      const { topicQueues } = await service.call('getTopicQueueIds', { topicNames: [name] })
      assert.deepEqual(Object.entries(topicQueues ?? {}), [[name, queueIds]])
    })
  }
})

suite('getMessageCount', () => {
  const count = async (request: object) => withoutBase(await service.call('getMessageCount', { ...base, ...request }))

  test('counts what a group has not committed, over all of its queues', async () => {
    const { queueIds } = await consume(service, 2)
    for (const queueId of queueIds) await publish(service, ['a', 'b', 'c'], queueId)
    assert.deepEqual(await count({ consumerGroupName: 'g1', topics: ['t1'] }), { suc: true, count: 6 })
  })

  test('goes down by what is committed', async () => {
    const { consumerId } = await consume(service)
    await publish(service, ['a', 'b', 'c'])
    const [queue] = (await assignment(service, consumerId)).queues
    const entry = { queueOffsetId: queue?.queueOffsetId, offsetVersion: queue?.offsetVersion, offset: 2 }
    await service.call('commitOffset', { queueOffsets: [{ ...entry, consumerGroupName: 'g1' }] })
    assert.deepEqual(await count({ consumerGroupName: 'g1' }), { suc: true, count: 1 })
  })

  test('counts nothing that was published before the subscription', async () => {
    await createTopic(service, 't1')
    await publish(service, ['a', 'b'])
    await createGroup(service, 'g1', ['t1'])
    await publish(service, ['c'])
    assert.deepEqual(await count({ consumerGroupName: 'g1' }), { suc: true, count: 1 })
  })

  for (const topics of [[], null, undefined]) {
    test(`counts all topics of the group where topics is ${JSON.stringify(topics)}`, async () => {
      await consume(service)
      await publish(service, ['a'])
      assert.deepEqual(await count({ consumerGroupName: 'g1', topics }), { suc: true, count: 1 })
    })
  }

  test('counts nothing of topics that the group does not subscribe to', async () => {
    await consume(service)
    await publish(service, ['a'])
    assert.deepEqual(await count({ consumerGroupName: 'g1', topics: ['t9'] }), { suc: true, count: 0 })
  })

  const refusals: [unknown, string][] = [
    [undefined, 'ConsumerGroupName不能为空！'],
    [null, 'ConsumerGroupName不能为空！'],
    ['', 'ConsumerGroupName不能为空！'],
    ['nobody', 'ConsumerGroupName不存在！'],
    ['no name', 'ConsumerGroupName不存在！'],
  ]
  for (const [consumerGroupName, msg] of refusals) {
    test(`refuses the group ${JSON.stringify(consumerGroupName)}`, async () => {
      assert.deepEqual(await count({ consumerGroupName }), { suc: false, msg })
    })
  }
})

suite('what clients report', () => {
  for (const endpoint of ['addLog', 'addCat', 'addOpLog', 'sendMail'] as const) {
    test(`is taken by ${endpoint}, whatever it holds`, async () => {
      for (const request of ['', 'null', '{}', '{"a":{"b":[1,null]},"type":"x","__proto__":1}']) {
        assert.deepEqual(withoutBase(await service.call(endpoint, request)), { suc: true })
      }
    })
  }
})
