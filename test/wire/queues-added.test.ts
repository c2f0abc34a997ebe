import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { addQueues as addQueuesIn } from '../../core/admin/queues.ts'
import { pullData } from '../../core/client/pull.ts'
import { createContainer, send } from '../log/containers.ts'
import { addQueues, bodiesOf, commit, refusal, viewGroup, viewTopic } from './operator.ts'
import { assignment, base, consume, createGroup, createTopic, join, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

/** A container of its own, which tells nobody of what it changes. */
const another = (settings = {}) => createContainer(service.core.store, { clock: service.clock, settings })

describe('queues that are added to a topic in use', () => {
  test('are shown empty and writable, and publishers are told of them', async () => {
    await createTopic(service, 't1', 2)
    const { queues } = await service.call('addQueues', { count: 2 }, { topicName: 't1' })
    assert.deepEqual(
      queues.map(({ queueId, readOnly, nextOffset }) => [queueId, readOnly, nextOffset]),
      [1, 2, 3, 4].map(queueId => [queueId, false, 1]),
    )
    const { topicQueues } = await service.call('getTopicQueueIds', { ...base, topicNames: ['t1'] })
    assert.deepEqual(topicQueues, { t1: [1, 2, 3, 4] })
  })

  test('are one where the request does not say how many', async () => {
    await createTopic(service, 't1')
    assert.equal((await service.call('addQueues', {}, { topicName: 't1' })).queues.length, 2)
  })

  test('are consumed from their first message by a group that runs', async () => {
    const { consumerId } = await consume(service)
    const before = await assignment(service, consumerId)
    const [added = 0] = await addQueues(service)
    await publish(service, ['first', 'second'], added)
    const after = await assignment(service, consumerId)
    assert.ok(after.version > before.version)
    const queue = after.queues.find(({ queueId }) => queueId === added)
    assert.ok(queue)
    assert.deepEqual(await bodiesOf(service, queue), ['first', 'second'])
  })

  test('lose nothing that was published to them before the group was rebalanced', async () => {
    const { consumerId } = await consume(service)
    const container = another()
    const { queues } = await addQueuesIn(container, 't1', { count: 1 })
    const added = queues.at(-1)?.queueId ?? 0
    await send(container, 't1', ['early'], { toQueue: added })
    assert.equal((await viewGroup(service)).queues.length, 1)
    await service.call('rb', { ...base, consumerGroupNames: ['g1'] })
    const queue = (await assignment(service, consumerId)).queues.find(({ queueId }) => queueId === added)
    assert.ok(queue)
    assert.deepEqual(await bodiesOf(service, queue), ['early'])
  })

  test('leave the queues that are there with their owners, at their offsetVersion', async () => {
    const { consumerId } = await consume(service, 2)
    const before = await assignment(service, consumerId)
    await addQueues(service, 2)
    const { queues } = await assignment(service, consumerId)
    assert.deepEqual(queues.slice(0, 2), before.queues)
  })

  test('are shared out among the members', async () => {
    const { consumerId } = await consume(service, 1)
    const other = await join(service, 'g1', ['t1'], 'other')
    await addQueues(service, 3)
    const counts = [consumerId, other].map(async id => (await assignment(service, id)).queues.length)
    assert.deepEqual(await Promise.all(counts), [2, 2])
  })

  test('can be claimed from their first message on', async () => {
    await createTopic(service, 't1')
    await service.call('createGroup', { name: 'g1', mode: 'claimed' })
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't1' })
    const [added = 0] = await addQueues(service)
    await publish(service, ['first'], added)
    const { queues } = await service.call('claimQueues', { consumerGroupName: 'g1', claimant: 'a' })
    assert.deepEqual(
      Object.values(queues ?? {}).map(({ queueId, offset }) => [queueId, offset]),
      [[added, 0]],
    )
  })

  test('belong at once to each member of a broadcast group, from their first message on', async () => {
    await createTopic(service, 't1')
    await service.call('createGroup', { name: 'g1', mode: 'broadcast' })
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't1' })
    const members = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    const before = await Promise.all(members.map(id => assignment(service, id, `g1~${id}`)))
    const [added = 0] = await addQueues(service)
    await publish(service, ['first'], added)
    for (const [i, id] of members.entries()) {
      const { queues, version } = await assignment(service, id, `g1~${id}`)
      const queue = queues.find(({ queueId }) => queueId === added)
      assert.ok(queue && version > (before[i]?.version ?? 0))
      assert.deepEqual(await bodiesOf(service, queue), ['first'])
      assert.equal(await commit(service, queue, 1), 'advanced')
    }
  })

  test('are pulled also through a container whose memory of the topic is older', async () => {
    await consume(service)
    const container = another({ topicCacheMs: 2_000 })
    await send(container, 't1', ['a'])
    const [added = 0] = await addQueues(service)
    await publish(service, ['first'], added)
    const { suc, msgs } = await pullData(container, { queueId: added, offsetStart: 0, offsetEnd: 9, topicName: 't1' })
    assert.deepEqual([suc, msgs?.map(message => message.body)], [true, ['first']])
  })

  test('are used by publishers that know the topic within two seconds', async () => {
    await createTopic(service, 't1')
    const container = another({ topicCacheMs: 2_000 })
    await send(container, 't1', ['a'])
    const [added = 0] = await addQueues(service)
    const toIt = () => send(container, 't1', ['b'], { toQueue: added })
    assert.equal((await toIt()).suc, false)
    service.clock.advance(2_000)
    assert.equal((await toIt()).suc, true)
  })

  test('may make up 1000 with those that are there, and no more', async () => {
    await createTopic(service, 't1', 990)
    await addQueues(service, 10)
    assert.deepEqual(await refusal(service, 'addQueues', { count: 1 }, { topicName: 't1' }), [
      400,
      'bad_request',
      'topic t1 has 1000 queues; at most 0 more are accepted',
    ])
    assert.equal((await viewTopic(service)).queues.length, 1000)
  })

  test('are refused for a topic that is not there, and by a number that is none', async () => {
    await createTopic(service, 't1')
    const asked: [unknown, string][] = [
      [{ count: 1 }, 't2'],
      [{ count: 0 }, 't1'],
      [{ count: 1001 }, 't1'],
      [{ counts: 1 }, 't1'],
    ]
    const statuses = asked.map(
      async ([request, topicName]) => (await refusal(service, 'addQueues', request, { topicName }))[0],
    )
    assert.deepEqual(await Promise.all(statuses), [404, 400, 400, 400])
  })

  test('begin at their first message also for a group that subscribed before and never ran', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await publish(service, ['before'])
    const [added = 0] = await addQueues(service)
    await publish(service, ['first'], added)
    const { queues } = await viewGroup(service)
    assert.deepEqual(
      queues.map(({ queueId, offset, lag }) => [queueId, offset, lag]),
      [
        [1, 0, 1],
        [added, 0, 1],
      ],
    )
  })

  test('begin at the end for a group that subscribes later', async () => {
    await createTopic(service, 't1')
    const [added = 0] = await addQueues(service)
    await publish(service, ['before'], added)
    await createGroup(service, 'g1', ['t1'])
    assert.deepEqual(
      (await viewGroup(service)).queues.map(queue => queue.lag),
      [0, 0],
    )
  })
})
