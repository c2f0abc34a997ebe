import type { Core } from '../core.ts'
import { findTail } from '../log/log-end.ts'
import type { TopicSnapshot } from '../model.ts'
import { PmqError } from '../protocol/errors.ts'
import { maxQueuesAtOnce } from '../store.ts'
import { requireTopic } from './topics.ts'

/**
 * Removes a topic to which no group subscribes; its messages end with their retention. First it is said that the topic is
 * being removed: who subscribes or adds queues afterwards is refused, in the same write; who did so before is seen. Then its
 * queues go, and last the topic, so that nothing is left of it where another one of its name would find it. Whoever dies
 * in between leaves a topic that is being removed: repeating it finishes, or cancels.
 *
 * A fail topic outlasts the subscription that it is of, for the dead letters that are in it, and the topic too. It is
 * removed by its own name, or by the tick when there is nothing in it any more.
 */
export async function removeTopic(core: Core, topicName: string): Promise<{ removed: string }> {
  await requireTopic(core, topicName)
  const removal = core.newId()
  const begun = await core.store.beginTopicRemoval(topicName, removal)
  const snapshot = begun === 'begun' ? await core.store.readTopic(topicName) : undefined
  if (snapshot) await finish(core, snapshot, removal)
  // Else another request has removed it meanwhile.
  core.topics.forget(topicName)
  core.lastQueues.delete(topicName)
  return { removed: topicName }
}

async function finish(core: Core, snapshot: TopicSnapshot, removal: string): Promise<void> {
  const { topic, queues } = snapshot
  if (snapshot.groupNames.length > 0) {
    await core.store.cancelTopicRemoval(topic.name, removal)
    throw inUse(snapshot)
  }
  const queueIds = queues.map(({ queueId }) => queueId)
  for (let from = 0; from < queueIds.length; from += maxQueuesAtOnce) {
    const some = queueIds.slice(from, from + maxQueuesAtOnce)
    if ((await core.store.removeTopicQueues(topic.name, removal, some)) === 'overtaken') throw overtaken(topic.name)
  }
  const outcome = await core.store.removeTopic(topic.name, removal, core.clock.now())
  if (outcome === 'overtaken') throw overtaken(topic.name)
}

/** Who subscribes makes the fail topic first. */
const leftOverAfterMs = 86_400_000

/** Whether a topic is the fail topic of a subscription that ended, and all that was in it is past retention. */
export async function isLeftOver(core: Core, { topic, queues, groupNames }: TopicSnapshot): Promise<boolean> {
  const nowMs = core.clock.now()
  if (topic.failOf === undefined || groupNames.length > 0 || topic.createdAtMs > nowMs - leftOverAfterMs) return false
  const tails = await Promise.all(queues.map(({ queueId }) => findTail(core.store, queueId)))
  return tails.every(tail => tail === undefined || tail.expiresAtMs <= nowMs)
}

const named = 10

function inUse({ topic: { name, failOf }, groupNames }: TopicSnapshot): PmqError {
  if (failOf) {
    const reason = `it takes what group ${failOf.groupName} fails to handle of topic ${failOf.topicName}`
    return new PmqError('conflict', `topic ${name} is in use: ${reason}; end that subscription first`)
  }
  const others = groupNames.length > named ? `, … (${groupNames.length})` : ''
  const names = `${groupNames.slice(0, named).join(', ')}${others}`
  return new PmqError('conflict', `topic ${name} is in use: end the subscriptions of its groups first: ${names}`)
}

const overtaken = (topicName: string) =>
  new PmqError('conflict', `topic ${topicName} is being removed by another request: see whether that has finished`)
