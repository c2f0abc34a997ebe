import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { viewTopic } from './operator.ts'
import { assignment, base, consume, createGroup, createTopic, firstQueue, join, publish, register } from './scene.ts'
import { openService, type Service, turn } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

const poll = (consumerId: number, consumerGroupVersion: object, more: object = {}) =>
  service.call('getConsumerGroupPolling', { ...base, consumerId, consumerGroupVersion, ...more })

/** Begins a poll that is to be held. */
async function hold(consumerId: number, consumerGroupVersion: object) {
  const held = { answer: poll(consumerId, consumerGroupVersion), isAnswered: false }
  held.answer.then(() => {
    held.isAnswered = true
  })
  await turn()
  return held
}

/** A group whose last rebalance is long ago, so that polls are held for their whole time. */
async function consumeQuietly(queues = 1) {
  const { consumerId, queueIds } = await consume(service, queues)
  const { version } = await assignment(service, consumerId)
  service.clock.advance(11_000)
  await service.call('heartbeat', { ...base, consumerId })
  return { consumerId, queueIds, version }
}

suite('what a poll answers', () => {
  test('is the assignment with every field that a PMQ client reads', async () => {
    const { consumerId, queueIds } = await consume(service)
    const { time, serverIp, sleepTime, ...answer } = await poll(consumerId, { g1: 0 })
    const [queueId = 0] = queueIds
    const [failQueueId = 0, other = 0] = (await viewTopic(service, 'g1_t1_fail')).queues.map(queue => queue.queueId)
    const common = {
      offsetVersion: 1,
      offset: 0,
      consumerGroupName: 'g1',
      originTopicName: 't1',
      failTopicName: 'g1_t1_fail',
      pullBatchSize: 50,
      consumerBatchSize: 1,
      retryCount: 4,
      stopFlag: 0,
      traceFlag: 0,
      lastId: 0,
      maxPullTime: 5,
      timeout: 0,
    }
    const ordinary = { topicName: 't1', topicType: 1, topicId: 1, delayProcessTime: 0, threadSize: 5 }
    const ofFailTopic = { topicName: 'g1_t1_fail', topicType: 2, topicId: 2, delayProcessTime: 60, threadSize: 1 }
    const backoff = { retryBackoffRate: 1, maxRetryDelay: 3600 }
    assert.deepEqual(answer, {
      suc: true,
      consumerDeleted: 0,
      brokerMetaMode: -1,
      changing: true,
      consumerGroups: {
        g1: {
          meta: { name: 'g1', rbVersion: 1, metaVersion: 2, version: 3 },
          queues: {
            [queueId]: { queueOffsetId: 1, queueId, ...common, ...ordinary },
            [failQueueId]: { queueOffsetId: 2, queueId: failQueueId, ...common, ...ofFailTopic, ...backoff },
            [other]: { queueOffsetId: 3, queueId: other, ...common, ...ofFailTopic, ...backoff },
          },
        },
      },
    })
  })

  test('has `queues` as an empty object where the consumer owns none', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    const consumerId = await join(service, 'g1', ['another'])
    assert.deepEqual((await poll(consumerId, { g1: 0 })).consumerGroups?.g1?.queues, {})
  })

  test("has only the asking consumer's queues", async () => {
    const { consumerId, queueIds } = await consume(service, 4)
    const other = await join(service, 'g1', ['t1'], 'other')
    assert.equal((await assignment(service, consumerId)).queues.length, 2)
    assert.deepEqual((await assignment(service, other)).queues, [])
    await service.call('deRegister', { ...base, id: consumerId })
    const others = (await assignment(service, other)).queues.map(queue => queue.queueId)
    assert.deepEqual(others, queueIds)
  })

  test('has the offset that was committed last', async () => {
    const { consumerId } = await consume(service)
    await publish(service, ['a', 'b', 'c'])
    const { queueOffsetId, offsetVersion } = await firstQueue(service, consumerId)
    const entry = { queueOffsetId, offsetVersion, offset: 2, consumerGroupName: 'g1' }
    await service.call('commitOffset', { ...base, queueOffsets: [entry] })
    assert.equal((await firstQueue(service, consumerId)).offset, 2)
  })

  test('has only those groups whose version is above the given one', async () => {
    await createGroup(service, 'g1', [])
    await createGroup(service, 'g2', [])
    const { consumerGroups } = await poll(await register(service), { g1: 99, g2: 0 })
    assert.deepEqual(Object.keys(consumerGroups ?? {}), ['g2'])
  })

  for (const groupName of ['__proto__', 'constructor', 'prototype', 'toString']) {
    test(`has a group of the name ${groupName}`, async () => {
      await createGroup(service, groupName, [])
      const request = `{"consumerId":${await register(service)},"consumerGroupVersion":{"${groupName}":0}}`
      const { consumerGroups } = await service.pass(service.call('getConsumerGroupPolling', request))
      assert.deepEqual(Object.keys(consumerGroups ?? {}), [groupName])
    })
  }

  test('leaves a group out whose version is null: null is absent', async () => {
    await createGroup(service, 'g1', [])
    await createGroup(service, 'g2', [])
    const { consumerGroups } = await poll(await register(service), { g1: null, g2: 0 })
    assert.deepEqual(Object.keys(consumerGroups ?? {}), ['g2'])
  })

  test('never has a version that is lower than before', async () => {
    const { consumerId } = await consume(service, 3)
    let last = { rbVersion: 0, metaVersion: 0, version: 0 }
    const check = async () => {
      const meta = (await poll(consumerId, { g1: 0 })).consumerGroups?.g1?.meta
      assert.ok(meta)
      for (const field of ['rbVersion', 'metaVersion', 'version'] as const) assert.ok(meta[field] >= last[field], field)
      last = meta
    }
    await check()
    const other = await join(service, 'g1', ['t1'], 'other')
    await check()
    await service.call('subscribe', { threadSize: 7 }, { groupName: 'g1', topicName: 't1' })
    await check()
    await service.call('deRegister', { ...base, id: other })
    await check()
    assert.ok(last.version >= 6)
  })
})

suite('versions', () => {
  const metaOf = async (consumerId: number) => (await poll(consumerId, { g1: 0 })).consumerGroups?.g1?.meta

  test('of an assignment that changes: rbVersion and version rise, metaVersion stays', async () => {
    const { consumerId } = await consume(service, 2)
    const before = await metaOf(consumerId)
    await join(service, 'g1', ['t1'], 'other')
    const after = await metaOf(consumerId)
    assert.ok(before && after)
    assert.deepEqual(
      [after.rbVersion - before.rbVersion, after.metaVersion - before.metaVersion, after.version - before.version],
      [1, 0, 1],
    )
  })

  test('of settings that change: metaVersion and version rise, rbVersion stays', async () => {
    const { consumerId } = await consume(service, 2)
    const before = await metaOf(consumerId)
    await service.call('subscribe', { threadSize: 9 }, { groupName: 'g1', topicName: 't1' })
    const after = await metaOf(consumerId)
    assert.ok(before && after)
    assert.deepEqual(
      [after.rbVersion - before.rbVersion, after.metaVersion - before.metaVersion, after.version - before.version],
      [0, 1, 1],
    )
  })
})

suite('how long a poll is held', () => {
  test('not at all with version 0, for a group without subscriptions too', async () => {
    await createGroup(service, 'g1', [])
    const { consumerGroups } = await poll(await register(service), { g1: 0 })
    assert.ok(consumerGroups?.g1)
  })

  test('for its whole time while nothing changes; then it is answered without groups', async () => {
    const { consumerId, version } = await consumeQuietly()
    const held = await hold(consumerId, { g1: version })
    service.clock.advance(4_900)
    await turn()
    assert.equal(held.isAnswered, false)
    service.clock.advance(100)
    assert.equal((await service.pass(held.answer)).consumerGroups, undefined)
  })

  test('until a group changes', async () => {
    const { consumerId, version } = await consumeQuietly()
    const held = await hold(consumerId, { g1: version })
    await service.call('subscribe', { threadSize: 9 }, { groupName: 'g1', topicName: 't1' })
    assert.equal(Object.values((await service.pass(held.answer)).consumerGroups?.g1?.queues ?? {})[0]?.threadSize, 9)
  })

  test('until a member joins that takes a queue', async () => {
    const { consumerId, version } = await consumeQuietly(2)
    const held = await hold(consumerId, { g1: version })
    await join(service, 'g1', ['t1'], 'other')
    const queues = Object.values((await service.pass(held.answer)).consumerGroups?.g1?.queues ?? {})
    assert.deepEqual(queues.map(queue => queue.topicType).sort(), [1, 2])
  })

  test('until a change in another container is noticed, after a second', async () => {
    const { consumerId, version } = await consumeQuietly()
    const held = await hold(consumerId, { g1: version })
    await service.core.store.raiseMeta('g1')
    service.clock.advance(1_000)
    await turn()
    assert.ok((await service.pass(held.answer)).consumerGroups?.g1)
  })

  test('half a second just after a rebalance, which PMQ clients wait for to be over', async () => {
    const { consumerId } = await consume(service)
    const { version } = await assignment(service, consumerId)
    const held = await hold(consumerId, { g1: version })
    service.clock.advance(500)
    await turn()
    assert.equal(held.isAnswered, true)
  })

  test('its whole time for a consumer that is not known, which is then told', async () => {
    const held = await hold(4711, { g1: 0 })
    service.clock.advance(4_900)
    await turn()
    assert.equal(held.isAnswered, false)
    service.clock.advance(100)
    assert.equal((await service.pass(held.answer)).consumerDeleted, 1)
  })

  test('its whole time for a group that does not exist, which is left out', async () => {
    const held = await hold(await register(service), { nobody: 0 })
    service.clock.advance(4_900)
    await turn()
    assert.equal(held.isAnswered, false)
    service.clock.advance(100)
    assert.equal((await service.pass(held.answer)).consumerGroups, undefined)
  })

  test('not at all when it asks so', async () => {
    const { consumerId, version } = await consumeQuietly()
    assert.equal((await poll(consumerId, { g1: version }, { waitMs: 0 })).consumerGroups, undefined)
  })

  test('no longer than it asks', async () => {
    const { consumerId, version } = await consumeQuietly()
    const answer = poll(consumerId, { g1: version }, { waitMs: 700 })
    const startedAt = service.clock.now()
    await service.pass(answer)
    assert.ok(service.clock.now() - startedAt <= 750)
  })

  test('no longer than the process lives', async () => {
    const { consumerId, version } = await consumeQuietly()
    const held = await hold(consumerId, { g1: version })
    service.core.arrivals.close()
    assert.equal((await held.answer).suc, true)
  })
})
