import type { Core } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import type { GroupSnapshot, QueueOffset } from '../model.ts'
import { type GroupQueue, originOf, queuesOf, topicNamesOf } from './fail-topics.ts'
import { moveOf } from './handover.ts'

/** A group's place in a queue. `offset`: the last one that it does not want to see. */
export type Place = Pick<QueueOffset, 'groupName' | 'queueOffsetId' | 'offset' | 'consumerId'> & {
  /** The group's own: the version after it has to tell the owner. */
  rbVersion: number
}

/** `isNew`: the group has this one. Otherwise it had another for this queue, or is gone. */
type Added = { offset: QueueOffset; isNew: boolean }

/** Gives a group its place in a queue, unless it has one. */
export async function addOffset(core: Pick<Core, 'store'>, queue: GroupQueue, place: Place): Promise<Added> {
  const { readOnlySinceMs: _since, checkpoint: _checkpoint, ...names } = queue
  const rbVersion = place.consumerId === 0 ? 0 : place.rbVersion + 1
  const offset: QueueOffset = { ...place, ...names, offsetVersion: 0, isStopped: false, rbVersion }
  return { offset, isNew: (await core.store.addQueueOffset(offset)) === 'created' }
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
    await Promise.all(snapshot.subscriptions.flatMap(topicNamesOf).map(topicName => core.store.readTopic(topicName)))
  ).filter(topic => topic !== undefined)
  const there = new Set(topics.flatMap(({ queues }) => queues.map(queue => queue.queueId)))
  const names = new Set(topics.map(({ topic }) => topic.name))
  const gone = snapshot.offsets.filter(({ topicName, queueId }) => names.has(topicName) && !there.has(queueId))
  const kept = snapshot.offsets.filter(offset => !gone.includes(offset))
  if (gone.length > 0) await markUntold(core, snapshot, kept)
  await forEachOf(gone, offset => core.store.removeQueueOffset(offset, 'queue_removed'))

  const known = new Set(snapshot.offsets.map(offset => offset.queueId))
  const missing = topics.flatMap(queuesOf).filter(queue => !known.has(queue.queueId))
  const added = missing.length > 0 ? await addNew(core, snapshot, missing, owner) : []
  return { offsets: [...kept, ...added], hasAdded: added.length > 0, hasRemoved: gone.length > 0 }
}

async function addNew(
  core: Core,
  { group }: GroupSnapshot,
  queues: GroupQueue[],
  owner: number,
): Promise<QueueOffset[]> {
  const { name: groupName, rbVersion } = group
  const firstId = await core.store.takeIds('queueOffset', queues.length)
  const added: Added[] = []
  await forEachOf(queues, async (queue, i) => {
    const place = { groupName, queueOffsetId: firstId + i, offset: 0, consumerId: owner, rbVersion }
    added.push(await addOffset(core, queue, place))
  })
  // Whoever ended a subscription meanwhile has not seen these.
  const subscribed = new Set((await core.store.readSubscriptions(groupName)).map(({ topicName }) => topicName))
  const strays = added.filter(({ offset, isNew }) => isNew && !subscribed.has(originOf(offset)))
  await forEachOf(strays, ({ offset }) => core.store.removeQueueOffset(offset, 'unsubscribed'))
  return added.filter(each => !strays.includes(each)).map(({ offset }) => offset)
}

/**
 * Has an offset that stays say that the group has something to tell, as if it had moved: whoever dies after the removal of
 * another one leaves no other trace of it.
 */
async function markUntold(core: Core, { group }: GroupSnapshot, [kept]: readonly QueueOffset[]): Promise<void> {
  if (kept === undefined) return
  const { consumerId, nextConsumerId, leavingSinceMs: sinceMs = core.clock.now() } = kept
  const leaving = nextConsumerId !== undefined && { leaving: { nextConsumerId, sinceMs } }
  await core.store.moveQueue(moveOf(group, kept, { consumerId, ...leaving }))
}
