import type { Core } from '../core.ts'

/**
 * The lowest offset at which a queue's log may go on, by what the registry knows of it ("never forget the head"): TTL can
 * remove every batch of a quiet queue, but its offsets must not begin anew. The checkpoint is what the tick last recorded;
 * `deep` also asks what the queue's groups have committed, which the commit has cut to where the log ended.
 */
export async function resumeAt(
  core: Pick<Core, 'store' | 'topics'>,
  topicName: string,
  queueId: number,
  deep: boolean,
): Promise<number> {
  const snapshot = deep ? await core.store.readTopic(topicName) : await core.topics.get(topicName)
  const checkpoint = snapshot?.queues.find(queue => queue.queueId === queueId)?.checkpoint ?? 1
  if (!deep || snapshot === undefined) return checkpoint
  const groups = await Promise.all(snapshot.groupNames.map(groupName => core.store.readGroup(groupName)))
  const committed = groups
    .flatMap(group => group?.offsets ?? [])
    .filter(offset => offset.queueId === queueId)
    .map(offset => offset.offset + 1)
  return Math.max(checkpoint, ...committed)
}
