import { type Core, groupHasChanged } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import type { Group, GroupSnapshot, QueueOffset, Subscription, SubscriptionSettings, TopicSnapshot } from '../model.ts'
import { hasOwnOffsets, kindOf } from './copy-names.ts'
import { type GroupQueue, originOf, queuesOf } from './fail-topics.ts'
import { addOffset } from './offsets.ts'

/**
 * Subscribes a group to a topic and its fail topic, if it has one: it is handed every message published from now on. The
 * snapshot is of the group without the subscription. What an earlier one has left behind that was not ended whole becomes
 * the new one's.
 */
export async function addSubscription(
  core: Core,
  snapshot: GroupSnapshot,
  topic: TopicSnapshot,
  failTopic: TopicSnapshot | undefined,
  settings: SubscriptionSettings,
): Promise<'added' | 'unknown_topic'> {
  const { group } = snapshot
  const beginning = await begin(core, snapshot, failTopic ? [topic, failTopic] : [topic])
  const subscription = {
    ...settings,
    groupName: group.name,
    topicName: topic.topic.name,
    topicId: topic.topic.topicId,
    ...(failTopic && { failTopicId: failTopic.topic.topicId }),
  }
  const outcome = await core.store.createSubscription(subscription, kindOf(group))
  if (outcome === 'created') await correctBeginning(core, subscription, beginning)
  // It was removed meanwhile, or the topic.
  else if (outcome !== 'exists') await forgetOffsets(core, beginning.added, subscription.topicName)
  return outcome === 'unknown_topic' ? outcome : 'added'
}

/** Gives a subscription a fail topic that has none, and other settings. */
export async function addFailTopic(
  core: Core,
  snapshot: GroupSnapshot,
  subscription: Subscription,
  failTopic: TopicSnapshot,
  settings: SubscriptionSettings,
): Promise<'added' | 'unknown_topic'> {
  const { groupName, topicName } = subscription
  const beginning = await begin(core, snapshot, [failTopic])
  const change = { ...settings, failTopicId: failTopic.topic.topicId }
  const outcome = await core.store.updateSubscription(groupName, topicName, change)
  if (outcome === 'updated') await correctBeginning(core, subscription, beginning)
  else await forgetOffsets(core, beginning.added, topicName)
  return outcome === 'unknown_topic' ? outcome : 'added'
}

/** The settings of a subscription, without what it is of. */
export function settingsOf(subscription: Subscription): SubscriptionSettings {
  const { groupName: _group, topicName: _topic, topicId: _id, failTopicId: _failId, ...settings } = subscription
  return settings
}

type Beginning = {
  topicNames: string[]
  /** By queue, the last message that the group does not want to see. */
  newest: Map<number, number>
  /** Places that an earlier subscription has left. */
  left: ReadonlySet<number>
  added: QueueOffset[]
}

/** Gives a group its places in the queues of topics that it is about to subscribe to, at the end of each. */
async function begin(core: Core, { group, offsets }: GroupSnapshot, topics: TopicSnapshot[]): Promise<Beginning> {
  const topicNames = topics.map(({ topic }) => topic.name)
  const left = offsets.filter(({ topicName }) => topicNames.includes(topicName))
  const beginning: Beginning = {
    topicNames,
    newest: new Map(),
    left: new Set(left.map(offset => offset.queueOffsetId)),
    added: [],
  }
  if (!hasOwnOffsets(group)) return beginning
  const queues = topics.flatMap(queuesOf)
  await forEachOf(queues, async ({ topicName, queueId }) => {
    beginning.newest.set(queueId, (await core.findEnd(topicName, queueId)) - 1)
  })
  await addOffsets(core, group, queues, beginning)
  return beginning
}

async function addOffsets(
  core: Core,
  { name: groupName, origin, rbVersion }: Group,
  queues: readonly GroupQueue[],
  { newest, added }: Beginning,
): Promise<void> {
  const consumerId = origin && 'consumerId' in origin ? origin.consumerId : 0
  const firstId = await core.store.takeIds('queueOffset', queues.length)
  await forEachOf(queues, async (queue, i) => {
    const offset = newest.get(queue.queueId) ?? 0
    const place = { groupName, queueOffsetId: firstId + i, offset, consumerId, rbVersion }
    const answer = await addOffset(core, queue, place)
    if (answer.isNew) added.push(answer.offset)
  })
}

const maxRuns = 10

/**
 * Has every queue begin at now. Whoever ends the group's subscription at the same time may have removed offsets that were
 * just added, for as long as the new one was not there; a rebalance takes queues without one for new, of which the group
 * wants everything; and what an earlier subscription has left is old, may have been stopped, and was taken from its owner.
 */
async function correctBeginning(
  core: Core,
  { groupName, topicName }: Subscription,
  beginning: Beginning,
): Promise<void> {
  const { topicNames, newest, left, added } = beginning
  for (let run = 0; run < maxRuns; run++) {
    const snapshot = await core.store.readGroup(groupName)
    if (snapshot === undefined) return
    const isSubscribed = snapshot.subscriptions.some(subscription => subscription.topicName === topicName)
    if (!isSubscribed) return forgetOffsets(core, added, topicName)
    const behind = snapshot.offsets.filter(({ queueId, offset }) => offset < (newest.get(queueId) ?? 0))
    await forEachOf(behind, offset => core.store.resetOffset(offset, newest.get(offset.queueId) ?? 0))
    const old = snapshot.offsets.filter(({ queueOffsetId }) => left.has(queueOffsetId))
    if (run === 0) {
      const stopped = old.filter(({ isStopped }) => isStopped)
      await forEachOf(stopped, offset => core.store.setStopped(offset, false))
      if (old.some(({ consumerId }) => consumerId !== 0)) await tellAssignment(core, groupName)
    }
    const known = new Set(snapshot.offsets.map(offset => offset.queueId))
    const isComplete = [...newest.keys()].every(queueId => known.has(queueId))
    // One that the topic does not have any more is not to come back.
    const topics = isComplete ? [] : await Promise.all(topicNames.map(name => core.store.readTopic(name)))
    const queues = topics.filter(topic => topic !== undefined).flatMap(queuesOf)
    const missing = queues.filter(({ queueId }) => newest.has(queueId) && !known.has(queueId))
    if (missing.length > 0) await addOffsets(core, snapshot.group, missing, beginning)
    if (missing.length === 0 && behind.length === 0) return
  }
}

/**
 * Ends a group's subscription, and forgets how far the group was. Who works on the topic's queues hears of it by the
 * versions; what it has in hand it may finish. Repeating it finishes what an earlier call has begun. False: there was
 * nothing to end.
 */
export async function endSubscription(core: Core, { group }: GroupSnapshot, topicName: string): Promise<boolean> {
  const { name } = group
  const outcome = await core.store.removeSubscription(name, topicName, kindOf(group))
  // As they are now: a rebalance may have added some since the group was read.
  const { offsets = [] } = (await core.store.readGroup(name)) ?? {}
  const hasOffsets = offsets.some(offset => originOf(offset) === topicName)
  // While they are there, whoever comes after a call that died knows that it has to be told.
  if (hasOffsets) await tellAssignment(core, name)
  await forgetOffsets(core, offsets, topicName)
  groupHasChanged(core, name)
  return outcome === 'removed' || hasOffsets
}

/** Removes a group's offsets of a topic and its fail topic, unless it subscribes to it. */
function forgetOffsets(core: Core, offsets: readonly QueueOffset[], topicName: string): Promise<void> {
  const ofTopic = offsets.filter(offset => originOf(offset) === topicName)
  return forEachOf(ofTopic, offset => core.store.removeQueueOffset(offset, 'unsubscribed'))
}

/** Raises a group's `rbVersion`, by which its consumers hear that queues have come or gone. */
export async function tellAssignment(core: Core, groupName: string): Promise<void> {
  // A conflict means that another has told meanwhile, of something else perhaps.
  for (let run = 0; run < maxRuns; run++) {
    const group = (await core.store.readGroup(groupName))?.group
    if (!group) return
    const { rebalanceDone: asked, rbVersion: expectedRbVersion } = group
    const nowMs = core.clock.now()
    const outcome = await core.store.finishRebalance({ groupName, asked, moved: true, expectedRbVersion, nowMs })
    if (outcome !== 'conflict') return groupHasChanged(core, groupName)
  }
}
