import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { addQueues, commit, drainAndRemove, ordinary, refusal, viewGroup, viewTopic } from './operator.ts'
import { assignment, base, consume, createGroup, createTopic, join, register } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService({ settings: { subEnvironments: true } })
})
afterEach(() => service.close())

const day = 86_400_000
const to = { groupName: 'g1', topicName: 't1' }
const failName = 'g1_t1_fail'

/** Reports a failure of a queue, as a Java client does. */
async function fail(queueId: number, topicName = failName, retryCount = 1) {
  const failMsg = { topicName, msgs: [{ body: 'bad', retryCount }] }
  const { suc, msg } = await service.call('publishAndUpdateResultFailMsg', { ...base, queueId, failMsg })
  assert.equal(suc, true, msg)
}
const failQueuesOf = async (groupName = 'g1') => {
  const { queues } = await service.call('getGroup', undefined, { groupName })
  return queues.filter(queue => queue.originTopicName !== undefined)
}
const topicNames = (queues: AssignedQueue[]) => [...new Set(queues.map(queue => queue.topicName))].toSorted()

describe('the fail topic of a subscription', () => {
  test('is made with it, has two queues, and keeps what is in it for two weeks at least', async () => {
    for (const [topicName, retentionMs, expectedMs] of [
      ['t1', day, 14 * day],
      ['t2', 30 * day, 30 * day],
    ] as const) {
      await service.call('createTopic', { name: topicName, queues: 1, retentionMs })
      await createGroup(service, `g-${topicName}`, [topicName])
      const failTopic = await viewTopic(service, `g-${topicName}_${topicName}_fail`)
      assert.deepEqual([failTopic.queues.length, failTopic.retentionMs], [2, expectedMs])
      assert.deepEqual(failTopic.failOf, { groupName: `g-${topicName}`, topicName })
      assert.deepEqual(failTopic.groups, [`g-${topicName}`])
    }
    assert.deepEqual(await service.call('listTopics'), {
      topics: ['t1', 't2'],
      failTopics: ['g-t1_t1_fail', 'g-t2_t2_fail'],
    })
  })

  test('is shown with its subscription, and its queues as what they are', async () => {
    const { queueIds } = await consume(service)
    await fail(queueIds[0] ?? 0)
    const { subscriptions, queues } = await service.call('getGroup', undefined, { groupName: 'g1' })
    assert.deepEqual(
      subscriptions.map(subscription => [subscription.topicName, subscription.failTopicName]),
      [['t1', failName]],
    )
    assert.deepEqual(
      queues.map(queue => [queue.topicName, queue.originTopicName]),
      [
        ['t1', undefined],
        [failName, 't1'],
        [failName, 't1'],
      ],
    )
    assert.equal(
      (await failQueuesOf()).reduce((sum, queue) => sum + queue.lag, 0),
      1,
    )
    const count = async (topics?: string[]) =>
      (await service.call('getMessageCount', { ...base, consumerGroupName: 'g1', topics })).count
    assert.deepEqual([await count(), await count([failName]), await count(['t1'])], [1, 1, 0])
    const { topics } = await service.call('getTopic', { ...base, consumerGroupName: 'g1' })
    assert.deepEqual(topics, ['t1'])
  })

  test('has the settings of the subscription, at each change of it, one handler call at a time, and its backoff', async () => {
    const { consumerId } = await consume(service)
    const settings = {
      consumerBatchSize: 9,
      timeoutSeconds: 7,
      tag: 'a',
      retryCount: 5,
      retryDelaySeconds: 2,
      retryBackoffRate: 1.5,
      maxRetryDelaySeconds: 8,
      delayProcessTimeSeconds: 11,
      retryInPlace: true,
    }
    await service.call('subscribe', settings, to)
    const { queues, failQueues } = await assignment(service, consumerId)
    const common = { consumerBatchSize: 9, timeout: 7, tag: 'a', retryCount: 6, failTopicName: failName }
    assert.partialDeepStrictEqual(queues[0], { ...common, threadSize: 5, delayProcessTime: 11, retryInPlace: true })
    for (const queue of failQueues) {
      const own = { threadSize: 1, delayProcessTime: 2, retryBackoffRate: 1.5, maxRetryDelay: 8 }
      assert.partialDeepStrictEqual(queue, { ...common, ...own })
      // What is in a fail topic has lost its place already.
      assert.ok(!('retryInPlace' in queue))
    }
  })

  test('is not to be subscribed to, changed or left by itself, by whatever group', async () => {
    await consume(service)
    await createGroup(service, 'g2', [])
    const message = 'g1_t1_fail is the fail topic of group g1 for topic t1, and goes with it'
    for (const groupName of ['g1', 'g2']) {
      const parameters = { groupName, topicName: failName }
      assert.deepEqual(await refusal(service, 'subscribe', { threadSize: 2 }, parameters), [409, 'conflict', message])
      assert.equal((await refusal(service, 'unsubscribe', undefined, parameters))[0], 404)
    }
    assert.equal((await failQueuesOf()).length, 2)
    assert.deepEqual((await service.call('listTopics')).failTopics, [failName])
  })

  test('may have names as long as there are, of groups, topics and sub-environments', async () => {
    const [group, topic] = ['g'.repeat(100), 't'.repeat(100)]
    await createTopic(service, topic)
    await createGroup(service, group, [topic])
    assert.equal((await viewTopic(service, `${group}_${topic}_fail`)).queues.length, 2)
    const subEnv = 'e'.repeat(149)
    const id = await register(service, 'a')
    const joins = (name: string) =>
      service.call('registerConsumerGroup', {
        ...base,
        consumerId: id,
        subEnv: name,
        consumerGroupNames: { [group]: [topic] },
      })
    assert.equal((await joins(`${subEnv}e`)).suc, false)
    assert.equal((await joins(subEnv)).suc, true)
    const copy = `${group}_${subEnv}`
    const { failQueues } = await assignment(service, id, copy)
    assert.deepEqual(topicNames(failQueues), [`${copy}_${topic}_fail`])
    await fail(failQueues[0]?.queueId ?? 0, `${copy}_${topic}_fail`)
  })

  test('is refused with its subscription where its name is that of another one', async () => {
    for (const name of ['b_c', 'c']) await createTopic(service, name)
    await createGroup(service, 'a', ['b_c'])
    await createGroup(service, 'a_b', [])
    assert.deepEqual(await refusal(service, 'subscribe', {}, { groupName: 'a_b', topicName: 'c' }), [
      409,
      'conflict',
      'the fail topic a_b_c_fail is that of another subscription: choose another group name',
    ])
    assert.deepEqual((await viewGroup(service, 'a_b')).subscriptions, [])
    assert.deepEqual((await viewTopic(service, 'a_b_c_fail')).failOf, { groupName: 'a', topicName: 'b_c' })
  })

  test('is made once, by however many subscribe at the same time', async () => {
    await createTopic(service, 't1', 2)
    await createGroup(service, 'g1', [])
    await Promise.all(Array.from({ length: 5 }, () => service.call('subscribe', {}, to)))
    assert.equal((await viewTopic(service, failName)).queues.length, 2)
    assert.deepEqual([(await viewGroup(service)).queues.length, (await failQueuesOf()).length], [2, 2])
  })

  test('is made by a subscription that is repeated, where there was none: what was there goes on where it is', async () => {
    const { store } = service.core
    const [queueId = 0] = await createTopic(service, 't1')
    await createGroup(service, 'g1', [])
    const topicId = (await viewTopic(service)).topicId
    const settings = (await service.call('subscribe', {}, to)).subscriptions[0]
    assert.ok(settings)
    await service.call('unsubscribe', undefined, to)
    const { failTopicName: _, ...without } = settings
    await store.createSubscription({ ...without, groupName: 'g1', topicId })
    await store.addQueueOffset({
      groupName: 'g1',
      queueOffsetId: 99,
      topicName: 't1',
      queueId,
      offset: 0,
      offsetVersion: 0,
      consumerId: 0,
      isStopped: false,
      rbVersion: 0,
    })
    assert.equal(
      (await service.call('getGroup', undefined, { groupName: 'g1' })).subscriptions[0]?.failTopicName,
      undefined,
    )
    const { subscriptions, queues } = await service.call('subscribe', {}, to)
    assert.equal(subscriptions[0]?.failTopicName, failName)
    assert.deepEqual(
      ordinary(queues).map(queue => queue.queueOffsetId),
      [99],
    )
    assert.equal((await failQueuesOf()).length, 2)
    const { failQueues } = await assignment(service, await join(service, 'g1', ['t1']))
    assert.equal(failQueues.length, 2)
  })
})

describe('the end of a subscription', () => {
  test('leaves its fail topic with what is in it, to nobody', async () => {
    const { queueIds } = await consume(service)
    await fail(queueIds[0] ?? 0)
    await service.call('unsubscribe', undefined, to)
    assert.deepEqual(await failQueuesOf(), [])
    const { groups, queues } = await viewTopic(service, failName)
    assert.deepEqual([groups, queues.reduce((sum, queue) => sum + queue.nextOffset - 1, 0)], [[], 1])
  })

  test('and a new one takes the fail topic up again, from its end', async () => {
    const { consumerId, queueIds } = await consume(service)
    await fail(queueIds[0] ?? 0)
    const before = await viewTopic(service, failName)
    await service.call('unsubscribe', undefined, to)
    await fail(queueIds[0] ?? 0)
    await service.call('subscribe', {}, to)
    const after = await viewTopic(service, failName)
    assert.deepEqual([after.topicId, after.groups], [before.topicId, ['g1']])
    assert.deepEqual(
      (await failQueuesOf()).map(queue => queue.lag),
      [0, 0],
    )
    await fail(queueIds[0] ?? 0)
    assert.equal(
      (await failQueuesOf()).reduce((sum, queue) => sum + queue.lag, 0),
      1,
    )
    assert.equal((await assignment(service, consumerId)).failQueues.length, 2)
  })

  test('by the removal of its group leaves nothing of the group', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await service.call('removeGroup', undefined, { groupName: 'g1' })
    assert.deepEqual((await viewTopic(service, failName)).groups, [])
    assert.deepEqual((await viewTopic(service)).groups, [])
  })
})

describe('the queues of fail topics', () => {
  test('are with members that handle the topic, and with no others', async () => {
    for (const name of ['t1', 't2']) await createTopic(service, name, 2)
    await createGroup(service, 'g1', ['t1', 't2'])
    const one = await join(service, 'g1', ['t1'], 'one')
    const other = await join(service, 'g1', ['t2'], 'other')
    assert.deepEqual(topicNames((await assignment(service, one)).failQueues), ['g1_t1_fail'])
    assert.deepEqual(topicNames((await assignment(service, other)).failQueues), ['g1_t2_fail'])
    await service.call('deRegister', { ...base, id: other })
    assert.deepEqual(topicNames((await assignment(service, one)).failQueues), ['g1_t1_fail'])
    assert.deepEqual((await viewGroup(service)).unhandledTopics, ['t2'])
  })

  test('are shared out among the members, beside those of topics', async () => {
    const { consumerId } = await consume(service, 4)
    const other = await join(service, 'g1', ['t1'], 'other')
    for (const { queues, failQueues } of [await assignment(service, consumerId)]) {
      for (const queue of [...queues, ...failQueues]) assert.equal(queue.offsetVersion, 1)
    }
    // What is leaving its owner is handed over when that says that it has stopped.
    const { version } = await assignment(service, consumerId)
    const request = { ...base, consumerId, consumerGroupVersion: { g1: version }, waitMs: 0 }
    await service.call('getConsumerGroupPolling', request)
    for (const id of [consumerId, other]) {
      const { queues, failQueues } = await assignment(service, id)
      assert.deepEqual([queues.length, failQueues.length], [2, 1])
    }
  })

  test('are there also when queues of the topic come and go, and lists of members change', async () => {
    const { consumerId } = await consume(service, 2)
    const before = await assignment(service, consumerId)
    await addQueues(service, 2)
    await drainAndRemove(service, 1)
    await service.call('heartbeat', { ...base, consumerId })
    await service.call('updateGroup', { allowedIps: ['10.0.0.0/8'] }, { groupName: 'g1' })
    assert.deepEqual((await assignment(service, consumerId)).failQueues, before.failQueues)
    await service.call('updateGroup', { deniedIps: [base.clientIp] }, { groupName: 'g1' })
    assert.deepEqual((await assignment(service, consumerId)).failQueues, [])
    await service.call('updateGroup', { deniedIps: [] }, { groupName: 'g1' })
    assert.equal((await assignment(service, consumerId)).failQueues.length, 2)
  })

  test('may be more, which the group takes up', async () => {
    const { consumerId } = await consume(service)
    const [added = 0] = await addQueues(service, 1, failName)
    const { failQueues } = await assignment(service, consumerId)
    assert.partialDeepStrictEqual(failQueues[2], { queueId: added, topicType: 2, originTopicName: 't1' })
  })

  test('are claimed like others, by whoever wants the topic', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    await createTopic(service, 't2')
    await service.call('createGroup', { name: 'g1', mode: 'claimed' })
    for (const topicName of ['t1', 't2']) await service.call('subscribe', {}, { groupName: 'g1', topicName })
    await fail(queueId)
    const claim = async (request: object) => {
      const asked = { ...base, consumerGroupName: 'g1', claimant: 'a', maxQueues: 9, ...request }
      return Object.values((await service.call('claimQueues', asked)).queues ?? {})
    }
    assert.deepEqual(await claim({ topicNames: ['t2'] }), [])
    const [claimed, ...more] = await claim({ topicNames: ['t1'] })
    assert.ok(claimed)
    assert.partialDeepStrictEqual(claimed, { topicName: failName, topicType: 2, originTopicName: 't1' })
    assert.deepEqual(more, [])
    assert.equal(await commit(service, claimed, 1, 1), 'advanced')
    assert.deepEqual(await claim({}), [])
  })

  test('stop with their topic, and start with it', async () => {
    const { consumerId } = await consume(service)
    const flags = async () => {
      const { queues, failQueues } = await assignment(service, consumerId)
      return [...queues, ...failQueues].map(queue => queue.stopFlag)
    }
    const group = { groupName: 'g1' }
    await service.call('stopQueues', { of: { topicName: 't1' } }, group)
    assert.deepEqual(await flags(), [1, 1, 1])
    await service.call('startQueues', { of: { topicName: failName } }, group)
    assert.deepEqual(await flags(), [1, 0, 0])
    await service.call('startQueues', { of: 'all' }, group)
    assert.deepEqual(await flags(), [0, 0, 0])
  })

  test('are reset only where they are named: a replay repeats no retries, and a skip loses none', async () => {
    const { consumerId, queueIds } = await consume(service)
    await fail(queueIds[0] ?? 0)
    const lag = async () => (await failQueuesOf()).reduce((sum, queue) => sum + queue.lag, 0)
    const reset = (request: object) => service.call('resetOffsets', request, { groupName: 'g1' })
    await reset({ of: 'all', to: 'end' })
    await reset({ of: { topicName: 't1' }, to: 'end' })
    assert.equal(await lag(), 1)
    await reset({ of: { topicName: failName }, to: 'end' })
    assert.equal(await lag(), 0)
    await reset({ of: 'all', to: 'start' })
    assert.equal(await lag(), 0)
    const { failQueues } = await assignment(service, consumerId)
    for (const { queueId } of failQueues) await reset({ of: { queueId }, to: 'start' })
    assert.equal(await lag(), 1)
  })
})

describe('fail topics of copies', () => {
  const joins = async (name: string, groupName: string, subEnv?: string) => {
    const consumerId = await register(service, name)
    const request = { ...base, consumerId, subEnv, consumerGroupNames: { [groupName]: ['t1', 't2'] } }
    const { consumerGroupNameNew } = await service.call('registerConsumerGroup', request)
    return { consumerId, groupName: consumerGroupNameNew?.[groupName] ?? groupName }
  }

  test("are a sub-environment's own, come with new subscriptions and go with those that end", async () => {
    for (const name of ['t1', 't2']) await createTopic(service, name)
    await createGroup(service, 'g1', ['t1'])
    const { consumerId, groupName } = await joins('a', 'g1', 'dev')
    const names = async () => topicNames((await assignment(service, consumerId, groupName)).failQueues)
    assert.deepEqual(await names(), ['g1_dev_t1_fail'])
    await service.call('subscribe', { retryCount: 9 }, { groupName: 'g1', topicName: 't2' })
    assert.deepEqual(await names(), ['g1_dev_t1_fail', 'g1_dev_t2_fail'])
    await service.call('subscribe', { retryCount: 7 }, to)
    const { failQueues } = await assignment(service, consumerId, groupName)
    assert.deepEqual([...new Set(failQueues.map(queue => queue.retryCount))].toSorted(), [10, 8].toSorted())
    await service.call('unsubscribe', undefined, to)
    assert.deepEqual(await names(), ['g1_dev_t2_fail'])
    assert.deepEqual((await viewTopic(service, 'g1_dev_t1_fail')).groups, [])
  })

  test('are none of broadcast groups, whose consumers repeat what failed where it is', async () => {
    await createTopic(service, 't1')
    await service.call('createGroup', { name: 'g1', mode: 'broadcast' })
    await service.call('subscribe', {}, to)
    for (const subEnv of [undefined, 'dev']) {
      const { consumerId, groupName } = await joins(`a-${subEnv}`, 'g1', subEnv)
      const { queues, failQueues } = await assignment(service, consumerId, groupName)
      assert.deepEqual([queues.length, failQueues.length], [1, 0])
      assert.ok(queues[0] && !('failTopicName' in queues[0]))
      const failMsg = { topicName: `${groupName}_t1_fail`, msgs: [{ body: 'bad', retryCount: 1 }] }
      const request = { ...base, queueId: queues[0].queueId, failMsg }
      assert.equal((await service.call('publishAndUpdateResultFailMsg', request)).suc, false)
    }
    assert.deepEqual((await service.call('listTopics')).failTopics, [])
  })
})
