import { type Core, groupHasChanged } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import type { Group, GroupSnapshot, SubscriptionSettings, TopicSnapshot } from '../model.ts'
import { kindOf } from './copy-names.ts'
import { addOffset } from './offsets.ts'

/** Subscribes a group to a topic: it is handed every message published from now on. */
export async function addSubscription(
  core: Core,
  group: Group,
  { topic, queues }: TopicSnapshot,
  settings: SubscriptionSettings,
): Promise<void> {
  const { name: groupName } = group
  // The members of a broadcast group have offsets of their own, in their copies of it.
  if (group.mode !== 'broadcast') {
    const consumerId = group.origin && 'consumerId' in group.origin ? group.origin.consumerId : 0
    const firstId = await core.store.takeIds('queueOffset', queues.length)
    await forEachOf(queues, async (queue, i) => {
      const newest = (await core.findEnd(topic.name, queue.queueId)) - 1
      await addOffset(core, queue, { groupName, queueOffsetId: firstId + i, offset: newest, consumerId })
    })
  }
  const { threadSize, consumerBatchSize, pullBatchSize, maxPullTimeSeconds } = settings
  const kept = { threadSize, consumerBatchSize, pullBatchSize, maxPullTimeSeconds }
  await core.store.createSubscription(
    { ...kept, groupName, topicName: topic.name, topicId: topic.topicId },
    kindOf(group),
  )
}

/**
 * Ends a group's subscription, and forgets how far the group was. Who works on the topic's queues hears of it by the
 * versions; what it has in hand it may finish. Repeating it finishes what an earlier call has begun. False: there was
 * nothing to end.
 */
export async function endSubscription(core: Core, snapshot: GroupSnapshot, topicName: string): Promise<boolean> {
  const { name } = snapshot.group
  const outcome = await core.store.removeSubscription(name, topicName, kindOf(snapshot.group))
  const offsets = snapshot.offsets.filter(offset => offset.topicName === topicName)
  await forEachOf(offsets, offset => core.store.removeQueueOffset(offset, 'unsubscribed'))
  if (offsets.length > 0) await tellAssignment(core, name)
  groupHasChanged(core, name)
  return outcome === 'removed' || offsets.length > 0
}

const maxRuns = 10

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
