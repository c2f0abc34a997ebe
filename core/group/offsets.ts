import type { Core } from '../core.ts'
import type { GroupSnapshot, Queue, QueueOffset } from '../model.ts'

/** Gives a group its place in a queue, unless it has one. `offset`: the last one that it does not want to see. */
export async function addOffset(
  core: Pick<Core, 'store'>,
  queue: Queue,
  place: Pick<QueueOffset, 'groupName' | 'queueOffsetId' | 'offset' | 'consumerId'>,
): Promise<QueueOffset> {
  const { topicName, queueId } = queue
  const added: QueueOffset = { ...place, topicName, queueId, offsetVersion: 0, isStopped: false, rbVersion: 0 }
  await core.store.addQueueOffset(added)
  return added
}

/** What a group has after its offsets were brought in line with its topics. */
export type AlignedOffsets = { offsets: QueueOffset[]; hasAdded: boolean; hasRemoved: boolean }

/**
 * Adds the offsets that a group lacks, of queues that its topics have got since it subscribed: it wants all that is in
 * them. Removes those of queues that are gone, which all groups had consumed. The snapshot has to be older than this call:
 * a queue that it names and that its topic does not have any more was removed, and can't be on its way.
 *
 * @param owner who owns what is added; 0: nobody
 */
export async function alignOffsets(core: Core, snapshot: GroupSnapshot, owner: number): Promise<AlignedOffsets> {
  const topics = (
    await Promise.all(snapshot.subscriptions.map(({ topicName }) => core.store.readTopic(topicName)))
  ).filter(topic => topic !== undefined)
  const there = new Set(topics.flatMap(({ queues }) => queues.map(queue => queue.queueId)))
  const names = new Set(topics.map(({ topic }) => topic.name))
  const gone = snapshot.offsets.filter(({ topicName, queueId }) => names.has(topicName) && !there.has(queueId))
  for (const offset of gone) await core.store.removeQueueOffset(offset, 'queue_removed')

  const known = new Set(snapshot.offsets.map(offset => offset.queueId))
  const missing = topics.flatMap(({ queues }) => queues).filter(queue => !known.has(queue.queueId))
  const firstId = missing.length > 0 ? await core.store.takeIds('queueOffset', missing.length) : 0
  const { name: groupName } = snapshot.group
  const added = await Promise.all(
    missing.map((queue, i) =>
      addOffset(core, queue, { groupName, queueOffsetId: firstId + i, offset: 0, consumerId: owner }),
    ),
  )
  const kept = snapshot.offsets.filter(offset => !gone.includes(offset))
  return { offsets: [...kept, ...added], hasAdded: added.length > 0, hasRemoved: gone.length > 0 }
}
