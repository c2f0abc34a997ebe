import type { Core } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import type { TopicSnapshot } from '../model.ts'
import { endOf } from './boundaries.ts'
import { findTail } from './log-end.ts'

/** An end that was seen so lately need not be looked for: who looks at groups' lag sees most of them within the hour. */
const seenWithinMs = 65 * 60_000

/**
 * Records in the registry how far each queue of a topic reaches, so that it is not forgotten when every batch is past
 * retention. Due at least hourly; TTL runs a day behind retention, so it has a day to be late. Answers with the topic.
 */
export async function checkpointTopic(
  core: Pick<Core, 'store' | 'clock' | 'logWatch' | 'oldTopics'>,
  topicName: string,
): Promise<TopicSnapshot | undefined> {
  core.oldTopics.forget(topicName)
  const snapshot = await core.oldTopics.get(topicName)
  const seenSinceMs = core.clock.now() - seenWithinMs
  await forEachOf(snapshot?.queues ?? [], async ({ queueId, checkpoint }) => {
    const nextOffset = core.logWatch.endSince(queueId, seenSinceMs) ?? (await readEnd(core, queueId))
    if (nextOffset > checkpoint) await core.store.checkpointQueue(topicName, queueId, nextOffset)
  })
  return snapshot
}

/** What was appended a moment ago is recorded the next time. */
async function readEnd({ store }: Pick<Core, 'store'>, queueId: number): Promise<number> {
  const tail = await findTail(store, queueId, { consistent: false })
  return tail === undefined ? 1 : endOf(tail)
}
