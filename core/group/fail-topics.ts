import type { Core } from '../core.ts'
import { makeTopic, removedLately } from '../make-topic.ts'
import type { Group, Queue, QueueOffset, Subscription, TopicSnapshot } from '../model.ts'

/**
 * Fail topics. What a group's consumers fail to handle they publish to a topic of its subscription, from whose queues the
 * same group hands it out again. It is a topic like any other, except that it takes nothing else. That is all that there is
 * of it in a subscription: one record says that the group works through both, so there are never one's queues without the
 * other's. It outlasts its subscription, for the dead letters that are in it.
 *
 * Broadcast groups have none: what one of their consumers fails to handle is no other's concern.
 */

/** PMQ's name for it; its clients make it up themselves. */
export const failTopicName = (groupName: string, topicName: string) => `${groupName}_${topicName}_fail`

/** PMQ's number of queues: failures are few. */
const queueCount = 2
/** Dead letters have to be there when somebody comes to look. */
const minRetentionMs = 14 * 86_400_000

export const hasFailTopics = ({ mode }: Pick<Group, 'mode'>) => mode !== 'broadcast'

/**
 * The fail topic of a group's subscription, made if it is not there. Undefined: there is none for this group, or its name
 * is taken, since names can be put together in two ways ("a_b" of "c", "a" of "b_c"): who came first has it.
 */
export async function openFailTopic(
  core: Core,
  group: Group,
  { topic }: TopicSnapshot,
): Promise<TopicSnapshot | undefined> {
  if (!hasFailTopics(group)) return undefined
  const failOf = { groupName: group.name, topicName: topic.name }
  const name = failTopicName(group.name, topic.name)
  const there = await core.store.readTopic(name)
  const retentionMs = Math.max(topic.retentionMs, minRetentionMs)
  const made = there ?? (await makeTopic(core, { name, retentionMs, failOf }, queueCount))
  if (made === 'removed_lately') throw removedLately(name)
  // Somebody else has made it meanwhile.
  const found = made === 'exists' ? await core.store.readTopic(name) : made
  const isOurs = found?.topic.failOf?.groupName === group.name && found.topic.failOf.topicName === topic.name
  return isOurs ? found : undefined
}

/** Whether a subscription should have a fail topic and has none. */
export const lacksFailTopic = (group: Group, { failTopicId }: Subscription) =>
  hasFailTopics(group) && failTopicId === undefined

/** The topics that a group works through by a subscription. */
export const topicNamesOf = ({ groupName, topicName, failTopicId }: Subscription): string[] =>
  failTopicId === undefined ? [topicName] : [topicName, failTopicName(groupName, topicName)]

/** The topic by whose subscription a group has a place in a queue. */
export const originOf = ({ topicName, originTopicName }: Pick<QueueOffset, 'topicName' | 'originTopicName'>) =>
  originTopicName ?? topicName

/** A queue as a group has its place in it. */
export type GroupQueue = Queue & Pick<QueueOffset, 'originTopicName'>

export const queuesOf = ({ topic, queues }: TopicSnapshot): GroupQueue[] =>
  queues.map(queue => ({ ...queue, ...(topic.failOf && { originTopicName: topic.failOf.topicName }) }))
