import type { Core } from './core.ts'
import { forEachOf } from './for-each-of.ts'
import type { Queue, Topic, TopicSnapshot } from './model.ts'
import { maxQueuesAtOnce } from './store.ts'

/** Makes a topic with its queues. Undefined: there is one of this name. */
export async function makeTopic(
  core: Core,
  fields: Omit<Topic, 'topicId' | 'createdAtMs'>,
  queueCount: number,
): Promise<TopicSnapshot | undefined> {
  const topicId = await core.store.takeIds('topic', 1)
  const firstQueueId = await core.store.takeIds('queue', queueCount)
  const queues = Array.from({ length: queueCount }, (_, i): Queue => {
    return { topicName: fields.name, queueId: firstQueueId + i, checkpoint: 1 }
  })
  const topic = { ...fields, topicId, createdAtMs: core.clock.now() }
  const outcome = await core.store.createTopic(topic, queues.slice(0, maxQueuesAtOnce))
  if (outcome === 'exists') return undefined
  await forEachOf(queues.slice(maxQueuesAtOnce), queue => core.store.addQueue(queue))
  return { topic, queues, groupNames: [] }
}
