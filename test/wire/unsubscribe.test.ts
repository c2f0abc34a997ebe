import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { StoreError } from '../../core/store.ts'
import { scriptStore } from '../core/scripted-store.ts'
import { bodiesOf, commit, refusal, viewGroup, viewTopic } from './operator.ts'
import { assignment, base, consume, createGroup, createTopic, join, publish } from './scene.ts'
import { openService, type Service, turn } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

const t1 = { groupName: 'g1', topicName: 't1' }
const unsubscribe = (parameters = t1) => service.call('unsubscribe', undefined, parameters)

/** A consumer of a group with two topics of two queues each. */
async function consumeTwo(): Promise<number> {
  for (const name of ['t1', 't2']) await createTopic(service, name, 2)
  await createGroup(service, 'g1', ['t1', 't2'])
  return join(service, 'g1', ['t1', 't2'])
}

describe('the end of a subscription', () => {
  test('takes the queues of the topic from its consumers, who hear of it by rbVersion and version', async () => {
    const consumerId = await consumeTwo()
    const before = await viewGroup(service)
    const held = await assignment(service, consumerId)
    const after = await unsubscribe()
    assert.ok(after.rbVersion > before.rbVersion && after.version > before.version)
    const { queues, version } = await assignment(service, consumerId)
    assert.deepEqual(
      queues.map(queue => queue.topicName),
      ['t2', 't2'],
    )
    assert.ok(version > held.version)
  })

  test('leaves the other topics as they are: owner, offset and offsetVersion', async () => {
    const consumerId = await consumeTwo()
    const before = await assignment(service, consumerId)
    await unsubscribe()
    const { queues } = await assignment(service, consumerId)
    assert.deepEqual(
      queues,
      before.queues.filter(queue => queue.topicName === 't2'),
    )
  })

  test('is told to a consumer that waits in a poll', async () => {
    const consumerId = await consumeTwo()
    const { version } = await assignment(service, consumerId)
    const answer = service.call('getConsumerGroupPolling', {
      ...base,
      consumerId,
      consumerGroupVersion: { g1: version },
    })
    await turn()
    await unsubscribe()
    const queues = Object.values((await service.pass(answer)).consumerGroups?.g1?.queues ?? {})
    assert.deepEqual([...new Set(queues.map(queue => queue.originTopicName))], ['t2'])
    assert.equal(queues.length, 4)
  })

  test('is in all views, and the topic can do without the group', async () => {
    await consumeTwo()
    const { subscriptions, queues, unhandledTopics } = await unsubscribe()
    assert.deepEqual(
      subscriptions.map(subscription => subscription.topicName),
      ['t2'],
    )
    assert.deepEqual([queues.length, unhandledTopics], [4, []])
    assert.deepEqual((await viewTopic(service)).groups, [])
    const { topics } = await service.call('getTopic', { ...base, consumerGroupName: 'g1' })
    assert.deepEqual(topics, ['t2'])
    const offsets = (await service.core.store.readGroup('g1'))?.offsets
    assert.equal(offsets?.length, 4)
    assert.deepEqual((await viewTopic(service, 'g1_t1_fail')).groups, [])
  })

  test('answers what its consumers commit later with unknown_queue', async () => {
    const consumerId = await consumeTwo()
    const [queue] = (await assignment(service, consumerId)).queues
    assert.ok(queue)
    await publish(service, ['a'], queue.queueId)
    await unsubscribe()
    assert.equal(await commit(service, queue, 1), 'unknown_queue')
    assert.equal(await commit(service, queue, 1, 1), 'unknown_queue')
  })

  test('is refused where there is nothing to end, and told apart from what is not there', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await unsubscribe()
    const noSubscription = [404, 'not_found', 'group g1 does not subscribe to topic t1']
    assert.deepEqual(await refusal(service, 'unsubscribe', undefined, t1), noSubscription)
    const noGroup = await refusal(service, 'unsubscribe', undefined, { ...t1, groupName: 'g2' })
    assert.deepEqual(noGroup, [404, 'not_found', 'there is no group g2'])
    for (const topicName of ['t2', 'no topic', '__proto__', '\ud800']) {
      assert.equal((await refusal(service, 'unsubscribe', undefined, { ...t1, topicName }))[0], 404)
    }
  })

  test('frees claims on the queues of the topic', async () => {
    await createTopic(service, 't1')
    await service.call('createGroup', { name: 'g1', mode: 'claimed' })
    await service.call('subscribe', {}, t1)
    await publish(service, ['a'])
    const { queues } = await service.call('claimQueues', { consumerGroupName: 'g1', claimant: 'a' })
    await unsubscribe()
    const { results } = await service.call('renewClaims', {
      consumerGroupName: 'g1',
      queues: Object.values(queues ?? {}),
    })
    assert.equal(results?.[0]?.outcome, 'fenced')
  })

  test('may be the end of the last one: the group stays, with its members', async () => {
    const { consumerId } = await consume(service)
    await unsubscribe()
    const { members, queues } = await viewGroup(service)
    assert.deepEqual([members.length, queues], [1, []])
    assert.deepEqual((await assignment(service, consumerId)).queues, [])
  })
})

describe('a new subscription of a group that has unsubscribed', () => {
  test('begins at now, and its consumers go on without a restart', async () => {
    const { consumerId } = await consume(service)
    await publish(service, ['before'])
    await unsubscribe()
    await publish(service, ['between'])
    await service.call('subscribe', {}, t1)
    await publish(service, ['after'])
    const [queue] = (await assignment(service, consumerId)).queues
    assert.ok(queue)
    assert.deepEqual(await bodiesOf(service, queue), ['after'])
    assert.equal(await commit(service, queue, 3), 'advanced')
  })

  test('has places of its own: what was committed before it counts no more', async () => {
    const { consumerId } = await consume(service)
    const [old] = (await assignment(service, consumerId)).queues
    await unsubscribe()
    await service.call('subscribe', {}, t1)
    await publish(service, ['a'])
    assert.ok(old)
    assert.equal(await commit(service, old, 1), 'unknown_queue')
    assert.equal((await viewGroup(service)).queues[0]?.lag, 1)
  })

  test('has the settings that it is given, not those of before', async () => {
    await consume(service)
    await service.call('subscribe', { threadSize: 9 }, t1)
    await unsubscribe()
    const { subscriptions } = await service.call('subscribe', {}, t1)
    assert.equal(subscriptions[0]?.threadSize, 5)
  })
})

describe('an end of a subscription that was cut off', () => {
  /** A request whose store is gone when it comes to remove offsets. */
  async function cutOff() {
    const scripted = scriptStore(service.core.store)
    scripted.next('removeQueueOffset', () => {
      throw new StoreError('throttled', 'it is gone')
    })
    const { status } = await openService({ store: scripted.store }).send('unsubscribe', undefined, t1)
    assert.equal(status, 429)
  }

  test('is finished by the same request again', async () => {
    const consumerId = await consumeTwo()
    await cutOff()
    assert.deepEqual(
      (await assignment(service, consumerId)).queues.map(queue => queue.topicName),
      ['t2', 't2'],
    )
    const { queues } = await unsubscribe()
    assert.equal(queues.length, 4)
    assert.equal((await refusal(service, 'unsubscribe', undefined, t1))[0], 404)
  })

  test('leaves nothing that a new subscription would take up: it begins at now, and nothing is stopped', async () => {
    await consumeTwo()
    for (const queueId of [1, 2]) await publish(service, ['a', 'b'], queueId)
    await service.call('stopQueues', { of: { topicName: 't1' } }, { groupName: 'g1' })
    await cutOff()
    await service.call('subscribe', {}, t1)
    const { queues } = await viewGroup(service)
    assert.deepEqual(
      queues.filter(queue => queue.topicName === 't1').map(({ offset, lag, isStopped }) => [offset, lag, isStopped]),
      [
        [2, 0, false],
        [2, 0, false],
      ],
    )
  })
})
