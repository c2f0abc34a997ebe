import type { Store } from '../store.ts'

/**
 * By queue, the lowest offset at which its log may go on, by what the registry knows of a topic ("never forget the head"):
 * TTL can remove every batch of a quiet queue, but its offsets must not begin anew. It is the greatest of the checkpoint,
 * which the tick recorded last, and of what groups have committed, which a commit has cut to where the log ended.
 */
export async function readHeads(store: Store, topicName: string): Promise<Map<number, number> | undefined> {
  const snapshot = await store.readTopic(topicName)
  if (snapshot === undefined) return undefined
  const heads = new Map(snapshot.queues.map(queue => [queue.queueId, queue.checkpoint]))
  const groups = await Promise.all(snapshot.groupNames.map(groupName => store.readGroup(groupName)))
  for (const { queueId, offset } of groups.flatMap(group => group?.offsets ?? [])) {
    const head = heads.get(queueId)
    if (head !== undefined) heads.set(queueId, Math.max(head, offset + 1))
  }
  return heads
}
