import type { Core } from './core.ts'
import type { Queue, Topic, TopicSnapshot } from './model.ts'
import { PmqError } from './protocol/errors.ts'
import { maxQueuesAtOnce } from './store.ts'

/** Makes a topic with its queues, unless there is one of this name, or was a moment ago. */
export async function makeTopic(
  core: Core,
  fields: Omit<Topic, 'topicId' | 'createdAtMs'>,
  queueCount: number,
): Promise<TopicSnapshot | 'exists' | 'removed_lately'> {
  const topicId = await core.store.takeIds('topic', 1)
  const firstQueueId = await core.store.takeIds('queue', queueCount)
  const queues = Array.from({ length: queueCount }, (_, i): Queue => {
    return { topicName: fields.name, queueId: firstQueueId + i, checkpoint: 1 }
  })
  const topic = { ...fields, topicId, createdAtMs: core.clock.now() }
  const outcome = await core.store.createTopic(topic, queues.slice(0, maxQueuesAtOnce))
  if (outcome !== 'created') return outcome
  for (let from = maxQueuesAtOnce; from < queueCount; from += maxQueuesAtOnce) {
    await core.store.addQueues(fields.name, queues.slice(from, from + maxQueuesAtOnce))
  }
  return { topic, queues, groupNames: [], notifies: [] }
}

export const removedLately = (topicName: string) =>
  new PmqError('conflict', `topic ${topicName} was removed just now: one of its name can be made a minute later`)
