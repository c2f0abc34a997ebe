import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import {
  addQueues,
  commit,
  drainAndRemove,
  refusal,
  removeQueue,
  setReadOnly,
  viewGroup,
  viewTopic,
} from './operator.ts'
import { assignment, base, consume, createGroup, createTopic, join, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

const refused = (queueId: number) =>
  refusal(service, 'removeQueue', undefined, { topicName: 't1', queueId: String(queueId) })

/** Makes a queue read-only, and waits for as long as it takes. */
async function settle(queueId: number) {
  await setReadOnly(service, queueId)
  service.clock.advance(60_000)
}

describe('a queue is not removed', () => {
  test('while it is writable', async () => {
    await createTopic(service, 't1', 2)
    assert.deepEqual(await refused(1), [409, 'conflict', 'queue 1 is writable: make it read-only first'])
  })

  test('within a minute after it became read-only', async () => {
    await createTopic(service, 't1', 2)
    await setReadOnly(service, 1)
    service.clock.advance(59_999)
    assert.deepEqual(await refused(1), [409, 'conflict', 'queue 1 became read-only just now: it can go in 1 s'])
    service.clock.advance(1)
    assert.equal((await removeQueue(service, 1)).queues.length, 1)
  })

  test('within a minute after it became read-only once more', async () => {
    await createTopic(service, 't1', 2)
    await settle(1)
    await setReadOnly(service, 1, false)
    await setReadOnly(service, 1)
    assert.deepEqual(await refused(1), [409, 'conflict', 'queue 1 became read-only just now: it can go in 60 s'])
  })

  test('while a group has messages of it to consume', async () => {
    const { consumerId } = await consume(service, 2)
    await publish(service, ['a', 'b'], 1)
    await settle(1)
    assert.deepEqual(await refused(1), [409, 'conflict', 'group g1 has 2 messages of queue 1 to consume yet'])
    const [queue] = (await assignment(service, consumerId)).queues
    assert.ok(queue)
    await commit(service, queue, 1)
    assert.deepEqual(await refused(1), [409, 'conflict', 'group g1 has 1 messages of queue 1 to consume yet'])
    await commit(service, queue, 2)
    assert.equal((await removeQueue(service, 1)).queues.length, 1)
  })

  test('while a group that never ran has messages of it, also of a queue that it was given later', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    const [added = 0] = await addQueues(service)
    await publish(service, ['a'], added)
    await settle(added)
    assert.deepEqual((await refused(added))[0], 409)
    await service.call('resetOffsets', { of: { queueId: added }, to: 'end' }, { groupName: 'g1' })
    await removeQueue(service, added)
  })

  test('while a member of a broadcast group has messages of it', async () => {
    await createTopic(service, 't1', 2)
    await service.call('createGroup', { name: 'g1', mode: 'broadcast' })
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't1' })
    const members = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    await publish(service, ['a'], 1)
    await settle(1)
    for (const id of members) {
      assert.deepEqual(await refused(1), [409, 'conflict', `group g1~${id} has 1 messages of queue 1 to consume yet`])
      const [queue] = (await assignment(service, id, `g1~${id}`)).queues
      assert.ok(queue)
      await commit(service, queue, 1)
    }
    await removeQueue(service, 1)
    for (const id of members) {
      const { queues } = await assignment(service, id, `g1~${id}`)
      assert.deepEqual(
        queues.map(queue => queue.queueId),
        [2],
      )
      const { offsets = [] } = (await service.core.store.readGroup(`g1~${id}`)) ?? {}
      assert.equal(offsets.length, 1)
    }
  })

  test('where it is not there, or its topic', async () => {
    await createTopic(service, 't1', 2)
    assert.deepEqual(await refused(9), [404, 'not_found', 'topic t1 has no queue 9'])
    const [status] = await refusal(service, 'removeQueue', undefined, { topicName: 't2', queueId: '1' })
    assert.equal(status, 404)
  })
})

describe('a queue that was removed', () => {
  test('is gone from the topic, from what publishers are told, from assignments, views and counts', async () => {
    const { consumerId } = await consume(service, 2)
    const before = await assignment(service, consumerId)
    await drainAndRemove(service, 1)
    assert.deepEqual(
      (await viewTopic(service)).queues.map(queue => queue.queueId),
      [2],
    )
    const { topicQueues } = await service.call('getTopicQueueIds', { ...base, topicNames: ['t1'] })
    assert.deepEqual(topicQueues, { t1: [2] })
    const after = await assignment(service, consumerId)
    assert.deepEqual(after.queues, before.queues.slice(1))
    assert.ok(after.version > before.version)
    assert.deepEqual(
      (await viewGroup(service)).queues.map(queue => queue.queueId),
      [2],
    )
    assert.equal((await service.call('getMessageCount', { ...base, consumerGroupName: 'g1' })).count, 0)
  })

  test('is told of by rbVersion, which is what makes a PMQ client drop it', async () => {
    const { consumerId } = await consume(service, 2)
    const { rbVersion } = await viewGroup(service)
    await drainAndRemove(service, 1)
    assert.ok((await viewGroup(service)).rbVersion > rbVersion)
    await service.call('heartbeat', { ...base, consumerId })
  })

  test('answers a late commit of it with unknown_queue, also a final one', async () => {
    const { consumerId } = await consume(service, 2)
    const [queue] = (await assignment(service, consumerId)).queues
    assert.ok(queue)
    await commit(service, queue, 0)
    await drainAndRemove(service, 1)
    assert.equal(await commit(service, queue, 0), 'unknown_queue')
    assert.equal(await commit(service, queue, 0, 1), 'unknown_queue')
  })

  test('answers a late pull as one that is not there', async () => {
    await consume(service, 2)
    await drainAndRemove(service, 1)
    const request = { ...base, queueId: 1, offsetStart: 0, offsetEnd: 50, topicName: 't1', consumerGroupName: 'g1' }
    const { suc, msg } = await service.call('pullData', request)
    assert.deepEqual([suc, msg], [false, 'queueId_1_is_not_exist！'])
  })

  test('gives its share to be balanced anew', async () => {
    const { consumerId } = await consume(service, 3)
    const other = await join(service, 'g1', ['t1'], 'other')
    const first = await assignment(service, consumerId)
    const counts = async () => {
      const queues = [consumerId, other].map(async id => (await assignment(service, id)).queues.length)
      return (await Promise.all(queues)).sort()
    }
    assert.equal(first.queues.length, 2)
    await drainAndRemove(service, first.queues[0]?.queueId ?? 0)
    // The queue that was to go to the other one has gone there, by the version that this one was told.
    await service.call('getConsumerGroupPolling', {
      ...base,
      consumerId,
      consumerGroupVersion: { g1: (await assignment(service, consumerId)).version },
      waitMs: 0,
    })
    assert.deepEqual(await counts(), [1, 1])
  })

  test('can be the only one that a group had, and its claim ends', async () => {
    await createTopic(service, 't1')
    await service.call('createGroup', { name: 'g1', mode: 'claimed' })
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't1' })
    await publish(service, ['a'], 1)
    const { queues } = await service.call('claimQueues', { consumerGroupName: 'g1', claimant: 'a', leaseMs: 900_000 })
    const [claimed] = Object.values(queues ?? {})
    assert.ok(claimed)
    await addQueues(service)
    await commit(service, claimed, 1)
    await drainAndRemove(service, 1)
    const { results } = await service.call('renewClaims', { consumerGroupName: 'g1', queues: [claimed] })
    assert.equal(results?.[0]?.outcome, 'fenced')
    assert.equal(await commit(service, claimed, 1, 1), 'unknown_queue')
  })

  test('leaves nothing of it in the registry', async () => {
    await consume(service, 2)
    await publish(service, ['a'], 2)
    await drainAndRemove(service, 1)
    const { offsets = [] } = (await service.core.store.readGroup('g1')) ?? {}
    assert.deepEqual(
      offsets.map(offset => offset.queueId),
      [2, 3, 4],
    )
  })

  test('is gone also where a group that subscribed to its topic was removed at the same time', async () => {
    await createTopic(service, 't1', 2)
    for (const name of ['g1', 'g2']) await createGroup(service, name, ['t1'])
    await settle(1)
    const [removed] = await Promise.all([
      service.send('removeQueue', undefined, { topicName: 't1', queueId: '1' }),
      service.send('removeGroup', undefined, { groupName: 'g2' }),
    ])
    assert.equal(removed.status, 200, removed.text)
  })

  test('leaves the others in use: nothing of theirs is handed out twice or lost', async () => {
    const { consumerId } = await consume(service, 2)
    await publish(service, ['a', 'b'], 2)
    const [, queue] = (await assignment(service, consumerId)).queues
    assert.ok(queue)
    await commit(service, queue, 1)
    await drainAndRemove(service, 1)
    const [left] = (await assignment(service, consumerId)).queues
    assert.deepEqual([left?.queueId, left?.offset, left?.offsetVersion], [2, 1, queue.offsetVersion])
    assert.equal(await commit(service, queue, 2), 'advanced')
  })
})
