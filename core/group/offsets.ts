import type { Core } from '../core.ts'
import type { GroupSnapshot, Queue, QueueOffset } from '../model.ts'

/** Gives a group its place in a queue, unless it has one. `offset`: the last one that it does not want to see. */
export async function addOffset(
  core: Pick<Core, 'store'>,
  groupName: string,
  queue: Queue,
  queueOffsetId: number,
  offset: number,
): Promise<QueueOffset> {
  const { topicName, queueId } = queue
  const added: QueueOffset = {
    groupName,
    queueOffsetId,
    topicName,
    queueId,
    offset,
    offsetVersion: 0,
    consumerId: 0,
    isStopped: false,
    rbVersion: 0,
  }
  await core.store.addQueueOffset(added)
  return added
}

/**
 * The group's offsets, with those added that it lacks: queues that its topics have got since it subscribed. It wants all
 * that is in them.
 */
export async function addMissingOffsets(core: Core, snapshot: GroupSnapshot): Promise<QueueOffset[]> {
  const known = new Set(snapshot.offsets.map(offset => offset.queueId))
  const topics = await Promise.all(snapshot.subscriptions.map(({ topicName }) => core.store.readTopic(topicName)))
  const missing = topics.flatMap(topic => topic?.queues ?? []).filter(queue => !known.has(queue.queueId))
  if (missing.length === 0) return snapshot.offsets
  const firstId = await core.store.takeIds('queueOffset', missing.length)
  const { name } = snapshot.group
  const added = await Promise.all(missing.map((queue, i) => addOffset(core, name, queue, firstId + i, 0)))
  return [...snapshot.offsets, ...added]
}
