import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { failTopicName } from '../../core/group/fail-topics.ts'
import { type ContractScene, groupOf, offsetOf, otherSettings, queueOf, subscriptionOf, topicOf } from './contract.ts'

/** The part of the contract that is about fail topics: a subscription that has one is recorded at both topics. */
export function failTopicContract({ store, unique }: ContractScene): void {
  /** A topic, a group, and a fail topic for the two. */
  async function makeScene() {
    const [topicName, groupName] = [`topic-${unique()}`, `group-${unique()}`]
    const failName = failTopicName(groupName, topicName)
    const failTopic = topicOf(failName, { topicId: 8, failOf: { groupName, topicName } })
    await store().createTopic(topicOf(topicName), [queueOf(topicName, 1)])
    assert.equal(await store().createTopic(failTopic, [queueOf(failName, 2)]), 'created')
    await store().createGroup(groupOf(groupName))
    const subscribers = async () =>
      Promise.all([topicName, failName].map(async name => (await store().readTopic(name))?.groupNames))
    return { topicName, groupName, failName, failTopic, subscribers }
  }
  const counters = async (groupName: string) => {
    const { metaVersion, version, rebalanceAsked } = (await store().readGroup(groupName))?.group ?? groupOf('')
    return [metaVersion, version, rebalanceAsked]
  }
  const isAwake = async (name: string) => (await store().listAwakeGroups()).some(({ groupName }) => groupName === name)

  describe('fail topics', () => {
    test('gives a fail topic back with what it is of, and lists it as any other', async () => {
      const { failName, failTopic } = await makeScene()
      assert.deepEqual((await store().readTopic(failName))?.topic, failTopic)
      const [listed] = await store().listTopics({ after: failName.slice(0, -1), limit: 1 })
      assert.equal(listed, failName)
    })

    test('subscribes with a fail topic, and is recorded at both topics; all that once', async () => {
      const { topicName, groupName, subscribers } = await makeScene()
      const subscription = { ...subscriptionOf(groupName, topicName), failTopicId: 8 }
      assert.equal(await store().createSubscription(subscription), 'created')
      assert.equal(await store().createSubscription(subscription), 'exists')
      assert.deepEqual((await store().readGroup(groupName))?.subscriptions, [subscription])
      assert.deepEqual(await store().readSubscriptions(groupName), [subscription])
      assert.deepEqual(await subscribers(), [[groupName], [groupName]])
      assert.deepEqual(await counters(groupName), [2, 2, 1])
    })

    test('ends such a subscription at both topics', async () => {
      const { topicName, groupName, subscribers } = await makeScene()
      await store().createSubscription({ ...subscriptionOf(groupName, topicName), failTopicId: 8 })
      assert.equal(await store().removeSubscription(groupName, topicName), 'removed')
      assert.deepEqual(await subscribers(), [[], []])
      assert.equal(await store().removeSubscription(groupName, topicName), 'unknown_subscription')
    })

    test('gives a subscription a fail topic later, with its settings: raises the versions, asks and wakes', async () => {
      const { topicName, groupName, subscribers } = await makeScene()
      const change = { ...otherSettings, failTopicId: 8 }
      assert.equal(await store().updateSubscription(groupName, topicName, change), 'unknown_subscription')
      assert.deepEqual(await subscribers(), [[], []])
      assert.equal(await isAwake(groupName), false)
      await store().createSubscription(subscriptionOf(groupName, topicName))
      assert.equal(await store().updateSubscription(groupName, topicName, change), 'updated')
      assert.deepEqual(await store().readSubscriptions(groupName), [
        { ...subscriptionOf(groupName, topicName), ...change },
      ])
      assert.deepEqual(await subscribers(), [[groupName], [groupName]])
      assert.deepEqual(await counters(groupName), [3, 3, 2])
      assert.ok(await isAwake(groupName))
    })

    test('leaves a subscription its fail topic when only its settings change', async () => {
      const { topicName, groupName, subscribers } = await makeScene()
      await store().createSubscription({ ...subscriptionOf(groupName, topicName), failTopicId: 8 })
      await store().updateSubscription(groupName, topicName, otherSettings)
      const [subscription] = await store().readSubscriptions(groupName)
      assert.deepEqual(subscription, { ...subscriptionOf(groupName, topicName), ...otherSettings, failTopicId: 8 })
      assert.deepEqual(await subscribers(), [[groupName], [groupName]])
      assert.deepEqual(await counters(groupName), [3, 3, 1])
    })

    test('keeps a place in a fail topic for as long as there is the subscription to its origin', async () => {
      const { topicName, groupName, failName } = await makeScene()
      const place = offsetOf(groupName, 1, { topicName: failName, originTopicName: topicName, queueId: 2 })
      await store().createSubscription({ ...subscriptionOf(groupName, topicName), failTopicId: 8 })
      assert.equal(await store().addQueueOffset(place), 'created')
      assert.deepEqual((await store().readGroup(groupName))?.offsets, [place])
      assert.equal(await store().removeQueueOffset(place, 'unsubscribed'), 'needed')
      assert.equal(await store().removeQueueOffset(place, 'queue_removed'), 'needed')
      await store().removeSubscription(groupName, topicName)
      assert.equal(await store().removeQueueOffset(place, 'unsubscribed'), 'removed')
      assert.deepEqual((await store().readGroup(groupName))?.offsets, [])
    })
  })
}
