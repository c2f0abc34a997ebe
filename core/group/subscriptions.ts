import { type Core, groupHasChanged } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import type { Group, GroupSnapshot, Queue, QueueOffset, SubscriptionSettings, TopicSnapshot } from '../model.ts'
import { hasOwnOffsets, kindOf } from './copy-names.ts'
import { addOffset } from './offsets.ts'

/**
 * Subscribes a group to a topic: it is handed every message published from now on. The snapshot is of the group without
 * the subscription. What another one has left behind that was not ended whole is removed.
 */
export async function addSubscription(
  core: Core,
  { group, offsets }: GroupSnapshot,
  { topic, queues }: TopicSnapshot,
  settings: SubscriptionSettings,
): Promise<void> {
  const { name: groupName } = group
  const newest = new Map<number, number>()
  let added: QueueOffset[] = []
  if (hasOwnOffsets(group)) {
    await forEachOf(queues, async ({ queueId }) => {
      newest.set(queueId, (await core.findEnd(topic.name, queueId)) - 1)
    })
    await forgetOffsets(core, { offsets }, topic.name)
    added = await addOffsets(core, group, queues, newest)
  }
  const { threadSize, consumerBatchSize, pullBatchSize, maxPullTimeSeconds } = settings
  const kept = { threadSize, consumerBatchSize, pullBatchSize, maxPullTimeSeconds }
  const subscription = { ...kept, groupName, topicName: topic.name, topicId: topic.topicId }
  const outcome = await core.store.createSubscription(subscription, kindOf(group))
  if (outcome === 'created') await correctBeginning(core, groupName, topic.name, newest)
  // It was removed meanwhile.
  else if (outcome === 'unknown_group') await forgetOffsets(core, { offsets: added }, topic.name)
}

/** @param newest by queue, the last message that the group does not want to see */
async function addOffsets(
  core: Core,
  { name: groupName, origin, rbVersion }: Group,
  queues: readonly Queue[],
  newest: ReadonlyMap<number, number>,
): Promise<QueueOffset[]> {
  const consumerId = origin && 'consumerId' in origin ? origin.consumerId : 0
  const firstId = await core.store.takeIds('queueOffset', queues.length)
  const added: QueueOffset[] = []
  await forEachOf(queues, async (queue, i) => {
    const place = {
      groupName,
      queueOffsetId: firstId + i,
      offset: newest.get(queue.queueId) ?? 0,
      consumerId,
      rbVersion,
    }
    const { offset, isNew } = await addOffset(core, queue, place)
    if (isNew) added.push(offset)
  })
  return added
}

const maxRuns = 10

/**
 * Whoever ends the group's subscription at the same time may remove offsets that were just added, for as long as the new
 * one is not there; and a rebalance takes queues without one for new, of which the group wants everything.
 */
async function correctBeginning(
  core: Core,
  groupName: string,
  topicName: string,
  newest: ReadonlyMap<number, number>,
): Promise<void> {
  for (let run = 0; run < maxRuns; run++) {
    const snapshot = await core.store.readGroup(groupName)
    if (snapshot === undefined) return
    if (!snapshot.subscriptions.some(subscription => subscription.topicName === topicName)) {
      return forgetOffsets(core, snapshot, topicName)
    }
    const behind = snapshot.offsets.filter(({ queueId, offset }) => offset < (newest.get(queueId) ?? 0))
    await forEachOf(behind, offset => core.store.resetOffset(offset, newest.get(offset.queueId) ?? 0))
    const known = new Set(snapshot.offsets.map(offset => offset.queueId))
    const isComplete = [...newest.keys()].every(queueId => known.has(queueId))
    // One that the topic does not have any more is not to come back.
    const { queues = [] } = isComplete ? {} : ((await core.store.readTopic(topicName)) ?? {})
    const missing = queues.filter(({ queueId }) => newest.has(queueId) && !known.has(queueId))
    if (missing.length > 0) await addOffsets(core, snapshot.group, missing, newest)
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
  const hasOffsets = offsets.some(offset => offset.topicName === topicName)
  // While they are there, whoever comes after a call that died knows that it has to be told.
  if (hasOffsets) await tellAssignment(core, name)
  await forgetOffsets(core, { offsets }, topicName)
  groupHasChanged(core, name)
  return outcome === 'removed' || hasOffsets
}

/** Removes a group's offsets of a topic, unless it subscribes to it. */
function forgetOffsets(core: Core, { offsets }: Pick<GroupSnapshot, 'offsets'>, topicName: string): Promise<void> {
  const ofTopic = offsets.filter(offset => offset.topicName === topicName)
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
    if (outcome === 'done') return groupHasChanged(core, groupName)
  }
}
