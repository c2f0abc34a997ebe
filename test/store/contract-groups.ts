import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Group } from '../../core/model.ts'
import {
  type ContractScene,
  consumerOf,
  groupOf,
  memberOf,
  offsetOf,
  queueOf,
  subscriptionOf,
  topicOf,
} from './contract.ts'

const settings = { allowedIps: ['10.0.0.0/8', 'fd00::/8'], deniedIps: ['10.0.0.7'], maxConsumers: 3 }

/** The part of the contract that is about groups that change while in use: their settings, copies, subscriptions, places. */
export function groupContract({ store, unique }: ContractScene): void {
  const makeGroup = async (fields: Partial<Group> = {}): Promise<Group> => {
    const group = groupOf(`group-${unique()}`, fields)
    assert.equal(await store().createGroup(group), 'created')
    return group
  }
  const removeAsItIs = async (name: string) => {
    const group = await store().readGroupRecord(name)
    assert.ok(group)
    assert.equal(await store().removeGroup(group), 'removed')
  }
  const listed = async (name: string) => (await store().listGroups({ limit: 10_000 })).includes(name)
  const isAwake = async (name: string) => (await store().listAwakeGroups()).some(({ groupName }) => groupName === name)
  const letSleep = async () => {
    for (const awake of await store().listAwakeGroups()) await store().sleepGroup(awake)
  }

  describe('settings of a group', () => {
    test('gives a group back with the mode and the settings that it was made with', async () => {
      const made = await makeGroup({ mode: 'claimed', ...settings })
      assert.deepEqual((await store().readGroup(made.name))?.group, made)
      assert.deepEqual(await store().readGroupRecord(made.name), made)
    })

    test('replaces the settings, raises the versions, asks for a rebalance and wakes the group', async () => {
      const group = await makeGroup()
      const counters = { metaVersion: 2, version: 2, rebalanceAsked: 1 }
      assert.equal(await store().updateGroup(group.name, settings), 'updated')
      assert.deepEqual((await store().readGroup(group.name))?.group, { ...group, ...settings, ...counters })
      assert.ok(await isAwake(group.name))
      const open = { allowedIps: [], deniedIps: [], maxConsumers: 0 }
      assert.equal(await store().updateGroup(group.name, open), 'updated')
      const again = { metaVersion: 3, version: 3, rebalanceAsked: 2 }
      assert.deepEqual((await store().readGroup(group.name))?.group, { ...group, ...open, ...again })
    })

    test('changes no group that is not there, and wakes none', async () => {
      const name = `group-${unique()}`
      assert.equal(await store().updateGroup(name, settings), 'unknown_group')
      assert.equal(await store().readGroup(name), undefined)
      assert.equal(await isAwake(name), false)
    })

    test('counts each of many concurrent changes', async () => {
      const { name } = await makeGroup()
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, (_, maxConsumers) => store().updateGroup(name, { ...settings, maxConsumers })),
      )
      assert.deepEqual(new Set(outcomes), new Set(['updated']))
      const group = await store().readGroupRecord(name)
      assert.deepEqual([group?.metaVersion, group?.version, group?.rebalanceAsked], [11, 11, 10])
    })
  })

  describe('copies of a group', () => {
    const subEnvCopyOf = (origin: Group) =>
      groupOf(`${origin.name}_blue`, { origin: { groupName: origin.name, subEnv: 'blue' } })
    const consumerCopyOf = (origin: Group, consumerId = 21) =>
      groupOf(`${origin.name}~${consumerId}`, { origin: { groupName: origin.name, consumerId } })

    test('makes a copy for a sub-environment, which is listed, and records it at its origin', async () => {
      const origin = await makeGroup()
      const copy = subEnvCopyOf(origin)
      assert.equal(await store().createGroup(copy), 'created')
      assert.deepEqual(await store().readGroupRecord(copy.name), copy)
      const snapshot = await store().readGroup(origin.name)
      assert.deepEqual(snapshot?.copies, [{ copyName: copy.name, subEnv: 'blue' }])
      assert.deepEqual(snapshot?.group, origin)
      assert.ok(await listed(copy.name))
    })

    test('makes a copy for one consumer, which is not listed, and records it at its origin', async () => {
      const origin = await makeGroup({ mode: 'broadcast' })
      const copy = consumerCopyOf(origin)
      assert.equal(await store().createGroup(copy), 'created')
      const own = { group: copy, subscriptions: [], offsets: [], members: [], lost: [], copies: [] }
      assert.deepEqual(await store().readGroup(copy.name), own)
      assert.deepEqual((await store().readGroup(origin.name))?.copies, [{ copyName: copy.name, consumerId: 21 }])
      assert.equal(await listed(copy.name), false)
      assert.equal(await isAwake(copy.name), false)
    })

    test('makes a copy once, and leaves what is there', async () => {
      const [origin, other] = [await makeGroup(), await makeGroup()]
      const copy = subEnvCopyOf(origin)
      await store().createGroup(copy)
      assert.equal(await store().createGroup({ ...copy, version: 9 }), 'exists')
      const stray = { ...copy, origin: { groupName: other.name, subEnv: 'green' } }
      assert.equal(await store().createGroup(stray), 'exists')
      assert.deepEqual(await store().readGroupRecord(copy.name), copy)
      assert.deepEqual((await store().readGroup(other.name))?.copies, [])
    })

    test('does not make a copy over a group that was made by hand', async () => {
      const origin = await makeGroup()
      const taken = await makeGroup()
      const copy = { ...taken, origin: { groupName: origin.name, subEnv: 'blue' } }
      assert.equal(await store().createGroup(copy), 'exists')
      assert.deepEqual(await store().readGroupRecord(taken.name), taken)
      assert.deepEqual((await store().readGroup(origin.name))?.copies, [])
    })

    test('makes no copy of a group that is not there, or is gone', async () => {
      const origin = groupOf(`group-${unique()}`)
      for (const copy of [subEnvCopyOf(origin), consumerCopyOf(origin)]) {
        assert.equal(await store().createGroup(copy), 'unknown_origin')
        assert.equal(await store().readGroup(copy.name), undefined)
        assert.equal(await listed(copy.name), false)
      }
      await store().createGroup(origin)
      await store().removeGroup(origin)
      assert.equal(await store().createGroup(subEnvCopyOf(origin)), 'unknown_origin')
      await store().createGroup(origin)
      assert.deepEqual((await store().readGroup(origin.name))?.copies, [])
    })

    test('lists the copies of a group in the order of their names', async () => {
      const origin = await makeGroup({ mode: 'broadcast' })
      for (const consumerId of [12, 9, 11]) await store().createGroup(consumerCopyOf(origin, consumerId))
      await store().createGroup(subEnvCopyOf(origin))
      assert.deepEqual(
        (await store().readGroup(origin.name))?.copies.map(({ copyName }) => copyName),
        ['_blue', '~11', '~12', '~9'].map(suffix => origin.name + suffix),
      )
    })

    test('lets exactly one of many concurrent makers make a copy, and records it once', async () => {
      const origin = await makeGroup()
      const copy = subEnvCopyOf(origin)
      const outcomes = await Promise.all(Array.from({ length: 10 }, () => store().createGroup(copy)))
      assert.equal(outcomes.filter(outcome => outcome === 'created').length, 1)
      assert.equal(outcomes.filter(outcome => outcome === 'exists').length, 9)
      assert.equal((await store().readGroup(origin.name))?.copies.length, 1)
    })

    test('forgets with a copy that its origin had it', async () => {
      const origin = await makeGroup()
      const [blue, own] = [subEnvCopyOf(origin), consumerCopyOf(origin)]
      await store().createGroup(blue)
      await store().createGroup(own)
      assert.equal(await store().removeGroup(blue), 'removed')
      assert.deepEqual((await store().readGroup(origin.name))?.copies, [{ copyName: own.name, consumerId: 21 }])
      assert.equal(await store().removeGroup(own), 'removed')
      assert.deepEqual((await store().readGroup(origin.name))?.copies, [])
      assert.equal(await store().readGroup(blue.name), undefined)
      assert.equal(await listed(blue.name), false)
    })

    test('tells of a subscription of a copy for one consumer nobody but the copy', async () => {
      const topicName = `topic-${unique()}`
      await store().createTopic(topicOf(topicName), [])
      const origin = await makeGroup({ mode: 'broadcast' })
      const copy = consumerCopyOf(origin)
      const subscription = subscriptionOf(copy.name, topicName)
      assert.equal(await store().createSubscription(subscription, 'consumer_copy'), 'unknown_group')
      await store().createGroup(copy)
      assert.equal(await store().createSubscription(subscription, 'consumer_copy'), 'created')
      assert.equal(await store().createSubscription(subscription, 'consumer_copy'), 'exists')
      assert.deepEqual((await store().readTopic(topicName))?.groupNames, [])
      assert.equal(await isAwake(copy.name), false)
      const { group, subscriptions } = (await store().readGroup(copy.name)) ?? {}
      assert.deepEqual(group, { ...copy, metaVersion: 2, version: 2 })
      assert.deepEqual(subscriptions, [subscription])
      assert.equal(await store().removeSubscription(copy.name, topicName, 'consumer_copy'), 'removed')
      assert.equal(await store().removeSubscription(copy.name, topicName, 'consumer_copy'), 'unknown_subscription')
      assert.deepEqual(await store().readGroupRecord(copy.name), { ...copy, metaVersion: 3, version: 3 })
      assert.equal(await isAwake(copy.name), false)
    })

    test('subscribes a copy for a sub-environment as any other group', async () => {
      const topicName = `topic-${unique()}`
      await store().createTopic(topicOf(topicName), [])
      const copy = subEnvCopyOf(await makeGroup())
      await store().createGroup(copy)
      assert.equal(await store().createSubscription(subscriptionOf(copy.name, topicName)), 'created')
      assert.deepEqual((await store().readTopic(topicName))?.groupNames, [copy.name])
      assert.ok(await isAwake(copy.name))
    })
  })

  describe('groups that go', () => {
    test('forgets a group and its name, once, and lets it be made anew', async () => {
      const group = await makeGroup()
      const asked = await store().askRebalance(group.name)
      assert.ok(asked)
      assert.equal(await store().removeGroup(asked), 'removed')
      assert.equal(await store().removeGroup(asked), 'unknown_group')
      assert.equal(await store().readGroup(group.name), undefined)
      assert.equal(await store().readGroupRecord(group.name), undefined)
      assert.equal(await listed(group.name), false)
      assert.equal(await isAwake(group.name), false)
      assert.equal(await store().createGroup(group), 'created')
      assert.deepEqual((await store().readGroup(group.name))?.group, group)
      assert.ok(await listed(group.name))
    })

    test('keeps a group that was asked to rebalance, or was told something, since it was read', async () => {
      const group = await makeGroup()
      await store().askRebalance(group.name)
      assert.equal(await store().removeGroup(group), 'conflict')
      const asked = await store().raiseMeta(group.name)
      assert.ok(asked)
      await store().createSubscription(subscriptionOf(group.name, 'orders'))
      assert.equal(await store().removeGroup(asked), 'conflict')
      assert.ok(await listed(group.name))
      assert.ok(await isAwake(group.name))
    })

    test('does nothing for a group that is gone, and wakes none', async () => {
      const group = await makeGroup()
      const { name } = group
      await store().removeGroup(group)
      assert.equal(await store().updateGroup(name, settings), 'unknown_group')
      assert.equal(await store().askRebalance(name), undefined)
      assert.equal(await store().raiseMeta(name), undefined)
      assert.equal(await store().createSubscription(subscriptionOf(name, 'orders')), 'unknown_group')
      assert.equal(await store().removeSubscription(name, 'orders'), 'unknown_subscription')
      assert.equal(await store().addQueueOffset(offsetOf(name, 1)), 'unknown_group')
      const done = { groupName: name, asked: 0, moved: true, expectedRbVersion: 0, nowMs: 1 }
      assert.equal(await store().finishRebalance(done), 'conflict')
      assert.equal(await store().readGroup(name), undefined)
      assert.equal(await isAwake(name), false)
    })

    test('subscribes with no group that is gone, though its subscription was left', async () => {
      const group = await makeGroup()
      const subscription = subscriptionOf(group.name, 'orders')
      await store().createSubscription(subscription)
      await removeAsItIs(group.name)
      assert.equal(await store().createSubscription(subscription), 'unknown_group')
    })

    test('hands no queue over in a group that is gone, though its place was left', async () => {
      const group = await makeGroup()
      const leaving = { consumerId: 21, nextConsumerId: 22, leavingSinceMs: 3_000 }
      await store().addQueueOffset(offsetOf(group.name, 1, leaving))
      await store().removeGroup(group)
      const commit = { groupName: group.name, queueOffsetId: 1, offsetVersion: 0, offset: 5, nowMs: 7_000 }
      assert.deepEqual(await store().commitOffset({ ...commit, release: true }), { outcome: 'unknown_queue' })
      await store().createGroup(group)
      assert.deepEqual((await store().readGroup(group.name))?.offsets, [offsetOf(group.name, 1, leaving)])
    })

    test('lets exactly one of many concurrent removals remove a group', async () => {
      const group = await makeGroup()
      const outcomes = await Promise.all(Array.from({ length: 10 }, () => store().removeGroup(group)))
      assert.equal(outcomes.filter(outcome => outcome === 'removed').length, 1)
      assert.equal(outcomes.filter(outcome => outcome === 'unknown_group').length, 9)
    })

    test('lets a member leave a group that is gone, so that the next group of this name has none', async () => {
      const group = await makeGroup()
      const consumerId = await store().takeIds('consumer', 1)
      await store().registerConsumer(consumerOf(consumerId, `consumer-${unique()}`))
      await store().joinGroup(memberOf(group.name, consumerId))
      await store().removeGroup(group)
      assert.equal(await store().leaveGroup(group.name, consumerId), 'left')
      assert.equal(await store().leaveGroup(group.name, consumerId), 'not_a_member')
      assert.equal(await isAwake(group.name), false)
      await store().createGroup(group)
      assert.deepEqual((await store().readGroup(group.name))?.members, [])
    })
  })

  describe('subscriptions that go', () => {
    test('ends a subscription once, raises the versions, asks for a rebalance and wakes the group', async () => {
      const topicName = `topic-${unique()}`
      await store().createTopic(topicOf(topicName), [])
      const group = await makeGroup()
      await store().createSubscription(subscriptionOf(group.name, topicName))
      await letSleep()
      assert.equal(await store().removeSubscription(group.name, topicName), 'removed')
      assert.ok(await isAwake(group.name))
      await letSleep()
      assert.equal(await store().removeSubscription(group.name, topicName), 'unknown_subscription')
      assert.equal(await isAwake(group.name), false)
      const snapshot = await store().readGroup(group.name)
      assert.deepEqual(snapshot?.subscriptions, [])
      assert.deepEqual(snapshot?.group, { ...group, metaVersion: 3, version: 3, rebalanceAsked: 2 })
      assert.deepEqual((await store().readTopic(topicName))?.groupNames, [])
    })

    test('knows no subscription of a group that is not there', async () => {
      assert.equal(await store().removeSubscription(`group-${unique()}`, 'orders'), 'unknown_subscription')
    })

    test('reads what a group subscribes to, and nothing else of it', async () => {
      const { name } = await makeGroup()
      assert.deepEqual(await store().readSubscriptions(name), [])
      for (const topicName of ['orders', 'bills']) await store().createSubscription(subscriptionOf(name, topicName))
      await store().addQueueOffset(offsetOf(name, 1))
      assert.deepEqual(await store().readSubscriptions(name), [
        subscriptionOf(name, 'bills'),
        subscriptionOf(name, 'orders'),
      ])
      assert.deepEqual(await store().readSubscriptions(`${name}-unknown`), [])
    })
  })

  describe('places in queues that come and go', () => {
    const scene = async () => {
      const topicName = `topic-${unique()}`
      await store().createTopic(topicOf(topicName), [queueOf(topicName, 5)])
      const { name } = await makeGroup()
      const place = (queueOffsetId: number) => offsetOf(name, queueOffsetId, { topicName, queueId: 5 })
      const placeIds = async () => (await store().readGroup(name))?.offsets.map(offset => offset.queueOffsetId)
      const subscribe = () => store().createSubscription(subscriptionOf(name, topicName))
      const unsubscribe = () => store().removeSubscription(name, topicName)
      const removeQueue = async () => {
        await store().setReadOnly(topicName, 5, 1)
        await store().removeQueue(topicName, 5)
      }
      return { name, place, placeIds, subscribe, unsubscribe, removeQueue }
    }

    test('gives no place to a group that is not there', async () => {
      const offset = offsetOf(`group-${unique()}`, 1)
      assert.equal(await store().addQueueOffset(offset), 'unknown_group')
      await store().createGroup(groupOf(offset.groupName))
      assert.equal(await store().addQueueOffset(offset), 'created')
    })

    test('gives no place by an id that is in use', async () => {
      const { name } = await makeGroup()
      assert.equal(await store().addQueueOffset(offsetOf(name, 1, { queueId: 5 })), 'created')
      assert.equal(await store().addQueueOffset(offsetOf(name, 1, { queueId: 6 })), 'exists')
      assert.deepEqual((await store().readGroup(name))?.offsets, [offsetOf(name, 1, { queueId: 5 })])
      assert.equal(await store().addQueueOffset(offsetOf(name, 2, { queueId: 6 })), 'created')
    })

    test('gives a group one place in each queue, however many are offered at once', async () => {
      const { name } = await makeGroup()
      const offered = Array.from({ length: 20 }, (_, i) => offsetOf(name, i + 1, { queueId: (i % 2) + 5 }))
      const outcomes = await Promise.all(offered.map(offset => store().addQueueOffset(offset)))
      assert.equal(outcomes.filter(outcome => outcome === 'created').length, 2)
      assert.equal(outcomes.filter(outcome => outcome === 'exists').length, 18)
      const queueIds = (await store().readGroup(name))?.offsets.map(offset => offset.queueId)
      assert.deepEqual(queueIds?.sort(), [5, 6])
    })

    test('keeps a place that a subscription needs, and removes it behind that', async () => {
      const { place, placeIds, subscribe, unsubscribe } = await scene()
      await store().addQueueOffset(place(1))
      await subscribe()
      assert.equal(await store().removeQueueOffset(place(1), 'unsubscribed'), 'needed')
      assert.deepEqual(await placeIds(), [1])
      await unsubscribe()
      assert.equal(await store().removeQueueOffset(place(1), 'unsubscribed'), 'removed')
      assert.equal(await store().removeQueueOffset(place(1), 'unsubscribed'), 'removed')
      assert.deepEqual(await placeIds(), [])
    })

    test('keeps a place in a queue that is there, and removes it behind that', async () => {
      const { place, placeIds, subscribe, removeQueue } = await scene()
      await store().addQueueOffset(place(1))
      await subscribe()
      assert.equal(await store().removeQueueOffset(place(1), 'queue_removed'), 'needed')
      assert.deepEqual(await placeIds(), [1])
      await removeQueue()
      assert.equal(await store().removeQueueOffset(place(1), 'queue_removed'), 'removed')
      assert.deepEqual(await placeIds(), [])
    })

    test('gives a place anew in a queue whose place was removed', async () => {
      const { place, placeIds } = await scene()
      await store().addQueueOffset(place(1))
      await store().removeQueueOffset(place(1), 'unsubscribed')
      assert.equal(await store().addQueueOffset(place(2)), 'created')
      assert.deepEqual(await placeIds(), [2])
    })

    test('removes by an old place nothing of the one that came after it', async () => {
      const { place, placeIds } = await scene()
      await store().addQueueOffset(place(1))
      await store().removeQueueOffset(place(1), 'unsubscribed')
      await store().addQueueOffset(place(2))
      assert.equal(await store().removeQueueOffset(place(1), 'unsubscribed'), 'removed')
      assert.deepEqual(await placeIds(), [2])
      assert.equal(await store().addQueueOffset(place(3)), 'exists', 'the queue is taken still')
    })

    test('removes many places of a group at once', async () => {
      const { name } = await makeGroup()
      const places = Array.from({ length: 20 }, (_, i) => offsetOf(name, i + 1))
      await Promise.all(places.map(place => store().addQueueOffset(place)))
      const outcomes = await Promise.all(places.map(place => store().removeQueueOffset(place, 'unsubscribed')))
      assert.deepEqual(new Set(outcomes), new Set(['removed']))
      assert.deepEqual((await store().readGroup(name))?.offsets, [])
    })

    test('does nothing with a place that was removed, and makes none', async () => {
      const { name, place, placeIds } = await scene()
      await store().addQueueOffset(place(1))
      await store().removeQueueOffset(place(1), 'unsubscribed')
      const at = { groupName: name, queueOffsetId: 1 }
      const commit = { ...at, offsetVersion: 0, offset: 5, nowMs: 1 }
      for (const release of [false, true]) {
        assert.deepEqual(await store().commitOffset({ ...commit, release }), { outcome: 'unknown_queue' })
      }
      const claim = { ...at, expectedOffsetVersion: 0, claimant: 'a', untilMs: 9, nowMs: 1 }
      assert.deepEqual(await store().claimQueue(claim), { outcome: 'conflict' })
      assert.deepEqual(await store().renewClaim({ ...at, offsetVersion: 0, untilMs: 9 }), { outcome: 'fenced' })
      assert.equal(await store().resetOffset(at, 3), 'unknown_queue')
      assert.equal(await store().setStopped(at, true), 'unknown_queue')
      const expected = { expectedOffsetVersion: 0, expectedConsumerId: 0, expectedNextConsumerId: undefined }
      assert.equal(await store().moveQueue({ ...at, ...expected, consumerId: 2, rbVersion: 1 }), 'conflict')
      assert.deepEqual(await placeIds(), [])
      assert.deepEqual(await store().readGroupRecord(name), groupOf(name))
    })

    test('needs a place or removes it, whichever of a subscription and a removal comes first', async () => {
      const { place, placeIds, subscribe } = await scene()
      await store().addQueueOffset(place(1))
      const [removed, subscribed] = await Promise.all([
        store().removeQueueOffset(place(1), 'unsubscribed'),
        subscribe(),
      ])
      assert.equal(subscribed, 'created')
      assert.deepEqual(await placeIds(), removed === 'removed' ? [] : [1])
    })
  })
}
