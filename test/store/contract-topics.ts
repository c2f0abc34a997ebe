import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { nameRestMs } from '../../core/store.ts'
import { type ContractScene, groupOf, queueOf, subscriptionOf, topicOf } from './contract.ts'

/** The part of the contract that is about topics that grow, and that go. */
export function topicContract({ store, unique }: ContractScene): void {
  const makeTopic = async (queueIds = [1, 2]) => {
    const name = `topic-${unique()}`
    await store().createTopic(
      topicOf(name),
      queueIds.map(queueId => queueOf(name, queueId)),
    )
    const read = () => store().readTopic(name)
    const idsOf = async () => (await read())?.queues.map(({ queueId }) => queueId)
    return { name, read, idsOf }
  }

  describe('queues that are added to a topic', () => {
    test('come all or none, and are counted as one addition', async () => {
      const { name, read, idsOf } = await makeTopic()
      assert.equal(await store().addQueues(name, [queueOf(name, 3), queueOf(name, 4)], 0), 'added')
      assert.equal(await store().addQueues(name, [queueOf(name, 5), queueOf(name, 2)], 1), 'conflict')
      assert.deepEqual([await idsOf(), (await read())?.topic.additions], [[1, 2, 3, 4], 1])
    })

    test('come only if none came since the topic was read, where that is asked', async () => {
      const { name, idsOf } = await makeTopic([1])
      assert.equal(await store().addQueues(name, [queueOf(name, 2)], 1), 'conflict')
      assert.equal(await store().addQueues(name, [queueOf(name, 2)], 0), 'added')
      assert.equal(await store().addQueues(name, [queueOf(name, 3)], 0), 'conflict')
      assert.equal(await store().addQueues(name, [queueOf(name, 3)], 1), 'added')
      assert.equal(await store().addQueues(name, [queueOf(name, 4)]), 'added')
      assert.deepEqual(await idsOf(), [1, 2, 3, 4])
    })

    test('come to one of many who have read the same', async () => {
      const { name, idsOf } = await makeTopic([1])
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, (_, i) => store().addQueues(name, [queueOf(name, i + 2)], 0)),
      )
      assert.deepEqual(outcomes.sort(), ['added', ...Array(9).fill('conflict')])
      assert.equal((await idsOf())?.length, 2)
    })

    test('do not come to a topic that is not there', async () => {
      const name = `topic-${unique()}`
      assert.equal(await store().addQueues(name, [queueOf(name, 1)]), 'unknown_topic')
      assert.equal(await store().addQueues(name, [queueOf(name, 1)], 0), 'unknown_topic')
      assert.equal(await store().readTopic(name), undefined)
    })
  })

  describe('a topic that is removed', () => {
    const makeGroup = async () => {
      const groupName = `group-${unique()}`
      await store().createGroup(groupOf(groupName))
      return groupName
    }

    test('gets no queues and no subscriptions from when that begins, until it is cancelled', async () => {
      const { name, idsOf } = await makeTopic()
      const groupName = await makeGroup()
      assert.equal(await store().beginTopicRemoval(name, 'a'), 'begun')
      assert.equal(await store().addQueues(name, [queueOf(name, 3)]), 'unknown_topic')
      assert.equal(await store().createSubscription(subscriptionOf(groupName, name)), 'unknown_topic')
      assert.deepEqual((await store().readGroup(groupName))?.subscriptions, [])
      await store().cancelTopicRemoval(name, 'a')
      assert.equal(await store().addQueues(name, [queueOf(name, 3)]), 'added')
      assert.equal(await store().createSubscription(subscriptionOf(groupName, name)), 'created')
      assert.deepEqual(await idsOf(), [1, 2, 3])
    })

    test('is no fail topic for a subscription from then on', async () => {
      const { name: topicName } = await makeTopic()
      const groupName = await makeGroup()
      const failTopic = `${groupName}_${topicName}_fail`
      await store().createTopic(topicOf(failTopic, { failOf: { groupName, topicName } }), [])
      await store().beginTopicRemoval(failTopic, 'a')
      const subscription = subscriptionOf(groupName, topicName)
      assert.equal(await store().createSubscription({ ...subscription, failTopicId: 8 }), 'unknown_topic')
      assert.equal(await store().createSubscription(subscription), 'created')
      const { groupName: _group, topicName: _topic, topicId: _id, ...settings } = subscription
      const change = { ...settings, failTopicId: 8 }
      assert.equal(await store().updateSubscription(groupName, topicName, change), 'unknown_topic')
      await store().cancelTopicRemoval(failTopic, 'a')
      assert.equal(await store().updateSubscription(groupName, topicName, change), 'updated')
      assert.deepEqual((await store().readTopic(failTopic))?.groupNames, [groupName])
    })

    test('goes with its queues, whether they are read-only or not', async () => {
      const { name, read, idsOf } = await makeTopic([1, 2, 3])
      await store().setReadOnly(name, 2, 5)
      await store().beginTopicRemoval(name, 'a')
      assert.equal(await store().removeTopicQueues(name, 'a', [1, 2]), 'removed')
      assert.deepEqual(await idsOf(), [3])
      assert.equal(await store().removeTopicQueues(name, 'a', [2, 3]), 'removed')
      assert.equal(await store().removeTopic(name, 'a', 5_000), 'removed')
      assert.equal(await read(), undefined)
      assert.ok(!(await store().listTopics({ limit: 10_000 })).includes(name))
      assert.equal(await store().beginTopicRemoval(name, 'b'), 'unknown_topic')
    })

    test('goes by who began last', async () => {
      const { name, read, idsOf } = await makeTopic()
      await store().beginTopicRemoval(name, 'a')
      await store().beginTopicRemoval(name, 'b')
      await store().cancelTopicRemoval(name, 'a')
      assert.equal(await store().removeTopicQueues(name, 'a', [1]), 'overtaken')
      assert.equal(await store().removeTopic(name, 'a', 5_000), 'overtaken')
      assert.deepEqual(await idsOf(), [1, 2])
      assert.equal(await store().removeTopicQueues(name, 'b', [1, 2]), 'removed')
      assert.equal(await store().removeTopic(name, 'b', 5_000), 'removed')
      assert.equal(await read(), undefined)
    })

    test('is not removed unless that has begun', async () => {
      const { name, idsOf } = await makeTopic()
      assert.equal(await store().removeTopicQueues(name, 'a', [1]), 'overtaken')
      assert.equal(await store().removeTopic(name, 'a', 5_000), 'overtaken')
      await store().beginTopicRemoval(name, 'a')
      await store().cancelTopicRemoval(name, 'a')
      assert.equal(await store().removeTopic(name, 'a', 5_000), 'overtaken')
      assert.equal(await store().beginTopicRemoval(`${name}-unknown`, 'a'), 'unknown_topic')
      assert.deepEqual(await idsOf(), [1, 2])
    })

    test('leaves its name alone for a minute, and then nothing to another one', async () => {
      const { name, read } = await makeTopic([1])
      const groupName = await makeGroup()
      await store().addQueues(name, [queueOf(name, 2)])
      await store().beginTopicRemoval(name, 'a')
      await store().removeTopicQueues(name, 'a', [1, 2])
      await store().removeTopic(name, 'a', 100_000)
      const heir = (createdAtMs: number) => topicOf(name, { topicId: 9, createdAtMs })
      assert.equal(await store().createTopic(heir(100_000 + nameRestMs - 1), [queueOf(name, 7)]), 'removed_lately')
      assert.equal(await store().createSubscription(subscriptionOf(groupName, name)), 'unknown_topic')
      assert.equal(await read(), undefined)
      const later = heir(100_000 + nameRestMs)
      assert.equal(await store().createTopic(later, [queueOf(name, 7)]), 'created')
      assert.deepEqual(await read(), { topic: later, queues: [queueOf(name, 7)], groupNames: [], notifies: [] })
      assert.equal(await store().createSubscription(subscriptionOf(groupName, name)), 'created')
    })

    test('is in the way of another one of its name until it is gone', async () => {
      const { name } = await makeTopic()
      await store().beginTopicRemoval(name, 'a')
      assert.equal(await store().createTopic(topicOf(name, { createdAtMs: 1e12 }), []), 'exists')
    })

    test('has no subscription, or is not removed: whoever comes first of a group and a removal', async () => {
      for (let run = 0; run < 6; run++) {
        const { name, read } = await makeTopic()
        const groupName = await makeGroup()
        const subscribe = () => store().createSubscription(subscriptionOf(groupName, name))
        const begin = () => store().beginTopicRemoval(name, 'a')
        // Some engines take requests in the order that they come in.
        const [subscribed] =
          run % 2 === 0
            ? await Promise.all([subscribe(), begin()])
            : (await Promise.all([begin(), subscribe()])).toReversed()
        const { groupNames = [] } = (await read()) ?? {}
        assert.deepEqual(groupNames, subscribed === 'created' ? [groupName] : [])
        assert.equal(await subscribe(), subscribed === 'created' ? 'exists' : 'unknown_topic')
      }
    })
  })
}
