import { type Core, groupHasChanged } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import { isWritable } from '../log/placement.ts'
import type { Queue, TopicSnapshot } from '../model.ts'
import type { AddQueuesRequest, ChangeQueueRequest, TopicView } from '../protocol/admin.ts'
import { PmqError } from '../protocol/errors.ts'
import { limits } from '../protocol/limits.ts'
import { maxQueuesAtOnce } from '../store.ts'
import { readWorking } from './group-view.ts'
import { getTopicView, requireTopic } from './topics.ts'

/** Adds queues to a topic while it is in use. Its groups get all that comes into them. */
export async function addQueues(core: Core, topicName: string, { count }: AddQueuesRequest): Promise<TopicView> {
  const snapshot = await requireRoom(core, topicName, count)
  const firstId = await core.store.takeIds('queue', count)
  const added = Array.from({ length: count }, (_, i): Queue => ({ topicName, queueId: firstId + i, checkpoint: 1 }))
  await changeUnderGroups(core, snapshot, async () => {
    for (let done = 0; done < count; ) {
      const some = added.slice(done, done + maxQueuesAtOnce)
      // Others may add some at the same time: who adds has seen all that there are.
      const { topic } = await requireRoom(core, topicName, count - done)
      const outcome = await core.store.addQueues(topicName, some, topic.additions ?? 0)
      if (outcome === 'unknown_topic') throw new PmqError('conflict', `topic ${topicName} is being removed`)
      if (outcome === 'added') done += some.length
    }
  })
  return getTopicView(core, topicName)
}

async function requireRoom(core: Core, topicName: string, count: number): Promise<TopicSnapshot> {
  const snapshot = await requireTopic(core, topicName)
  const has = snapshot.queues.length
  if (has + count <= limits.maxQueuesPerTopic) return snapshot
  const more = limits.maxQueuesPerTopic - has
  throw new PmqError('bad_request', `topic ${topicName} has ${has} queues; at most ${more} more are accepted`)
}

/** Makes a queue read-only: it is consumed, and nothing is appended any more. Or writable again. */
export async function changeQueue(
  core: Core,
  topicName: string,
  queueId: string,
  { readOnly }: ChangeQueueRequest,
): Promise<TopicView> {
  const { queues } = await requireTopic(core, topicName)
  const queue = requireQueue(topicName, queues, queueId)
  const isLast = queues.every(other => other.queueId === queue.queueId || !isWritable(other))
  if (readOnly && isLast && isWritable(queue)) throw lastWritable(queue)
  await core.store.setReadOnly(topicName, queue.queueId, readOnly ? core.clock.now() : undefined)
  core.topics.forget(topicName)
  const changed = await requireTopic(core, topicName)
  if (!changed.queues.some(isWritable)) {
    // Another one was made read-only at the same time, or whoever did so before died here.
    await core.store.setReadOnly(topicName, queue.queueId, undefined)
    core.topics.forget(topicName)
    throw lastWritable(queue)
  }
  return getTopicView(core, topicName)
}

const lastWritable = ({ topicName, queueId }: Queue) =>
  new PmqError('conflict', `queue ${queueId} is the last writable queue of topic ${topicName}`)

/**
 * For so long a queue has to be read-only before it goes: containers remember a topic for seconds, an append that began
 * before that takes seconds, and the retries of a publish look for it there.
 */
const settlingMs = 60_000

/**
 * Removes a queue that is read-only and that every group has consumed. Its groups forget their offsets in it when they are
 * rebalanced, which is at once.
 */
export async function removeQueue(core: Core, topicName: string, queueId: string): Promise<TopicView> {
  const snapshot = await requireTopic(core, topicName)
  const queue = requireQueue(topicName, snapshot.queues, queueId)
  const { readOnlySinceMs } = queue
  if (readOnlySinceMs === undefined) {
    throw new PmqError('conflict', `queue ${queueId} is writable: make it read-only first`)
  }
  const leftMs = readOnlySinceMs + settlingMs - core.clock.now()
  if (leftMs > 0) {
    const seconds = Math.ceil(leftMs / 1000)
    throw new PmqError('conflict', `queue ${queueId} became read-only just now: it can go in ${seconds} s`)
  }
  const newest = (await core.findEnd(topicName, queue.queueId)) - 1
  for (const groupName of snapshot.groupNames) await refuseIfNeeded(core, groupName, queue, newest)
  await changeUnderGroups(core, snapshot, async () => {
    const outcome = await core.store.removeQueue(topicName, queue.queueId, readOnlySinceMs)
    if (outcome === 'writable') throw new PmqError('conflict', `queue ${queueId} was made writable meanwhile`)
  })
  return getTopicView(core, topicName)
}

async function refuseIfNeeded(
  core: Core,
  groupName: string,
  { topicName, queueId }: Queue,
  newest: number,
): Promise<void> {
  const snapshot = await core.store.readGroup(groupName)
  // It was removed since the topic was read.
  if (snapshot === undefined) return
  for (const { group, offsets } of await readWorking(core, snapshot)) {
    const place = offsets.find(offset => offset.queueId === queueId)
    const lag = newest - (place?.offset ?? 0)
    if (lag <= 0) continue
    // Unless another request has removed the queue meanwhile, and the group has forgotten it.
    if (place === undefined && !(await hasQueue(core, topicName, queueId))) continue
    throw new PmqError('conflict', `group ${group.name} has ${lag} messages of queue ${queueId} to consume yet`)
  }
}

async function hasQueue(core: Core, topicName: string, queueId: number): Promise<boolean> {
  const { queues } = await requireTopic(core, topicName)
  return queues.some(queue => queue.queueId === queueId)
}

/**
 * Changes which queues a topic has, and has its groups take notice: those that it has afterwards. They are asked before as
 * well, so that whoever dies in between leaves rebalances that are owed.
 */
async function changeUnderGroups(core: Core, before: TopicSnapshot, change: () => Promise<void>): Promise<void> {
  const { name } = before.topic
  await forEachOf(before.groupNames, groupName => core.store.askRebalance(groupName))
  await change()
  core.topics.forget(name)
  const { groupNames } = await requireTopic(core, name)
  await forEachOf(groupNames, async groupName => {
    await core.store.askRebalance(groupName)
    await core.bus.groupChanged(groupName)
    groupHasChanged(core, groupName)
  })
}

function requireQueue(topicName: string, queues: readonly Queue[], queueId: string): Queue {
  const queue = queues.find(candidate => String(candidate.queueId) === queueId)
  if (queue) return queue
  throw new PmqError('not_found', `topic ${topicName} has no queue ${queueId}`)
}
