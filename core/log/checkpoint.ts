import type { Core } from '../core.ts'
import type { TopicSnapshot } from '../model.ts'
import { endOf } from './boundaries.ts'
import { findTail } from './log-end.ts'

/**
 * Records in the registry how far each queue of a topic reaches, so that it is not forgotten when every batch is past
 * retention. Due at least hourly; TTL runs a day behind retention, so it has a day to be late. Answers with the topic.
 */
export async function checkpointTopic(
  core: Pick<Core, 'store'>,
  topicName: string,
): Promise<TopicSnapshot | undefined> {
  const snapshot = await core.store.readTopic(topicName)
  for (const queue of snapshot?.queues ?? []) {
    const tail = await findTail(core.store, queue.queueId)
    if (tail === undefined) continue
    const nextOffset = endOf(tail)
    if (nextOffset > queue.checkpoint) await core.store.checkpointQueue(topicName, queue.queueId, nextOffset)
  }
  return snapshot
}
