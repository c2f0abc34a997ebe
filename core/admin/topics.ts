import { isName } from '../client/find.ts'
import type { Core } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import type { Queue, TopicSnapshot } from '../model.ts'
import type { CreateTopicRequest, TopicListView, TopicView } from '../protocol/admin.ts'
import { PmqError } from '../protocol/errors.ts'
import { maxQueuesAtOnce } from '../store.ts'
import { listAll } from './list.ts'

/** PMQ derives the names of fail topics from those of topics and groups; nobody else may take such a name. */
const reservedEnding = /fail$/i

/** Creates a topic with its queues. */
export async function createTopic(core: Core, request: CreateTopicRequest): Promise<TopicView> {
  const { name, retentionMs } = request
  if (reservedEnding.test(name)) {
    throw new PmqError('bad_request', `topic name ${name} ends in "fail"; such names are kept for fail topics`)
  }
  const existing = await core.store.readTopic(name)
  if (existing) throw alreadyExists(name)
  const topicId = await core.store.takeIds('topic', 1)
  const firstQueueId = await core.store.takeIds('queue', request.queues)
  const queues = Array.from({ length: request.queues }, (_, i): Queue => {
    return { topicName: name, queueId: firstQueueId + i, checkpoint: 1 }
  })
  const topic = { name, topicId, retentionMs, createdAtMs: core.clock.now() }
  const outcome = await core.store.createTopic(topic, queues.slice(0, maxQueuesAtOnce))
  if (outcome === 'exists') throw alreadyExists(name)
  await forEachOf(queues.slice(maxQueuesAtOnce), queue => core.store.addQueue(queue))
  const empty = queues.map(({ queueId }) => ({ queueId, readOnly: false, nextOffset: 1 }))
  return { ...topic, queues: empty, groups: [] }
}

const alreadyExists = (name: string) => new PmqError('already_exists', `topic ${name} exists already`)

export async function getTopicView(core: Core, topicName: string): Promise<TopicView> {
  return toView(core, await requireTopic(core, topicName))
}

/** A topic that has to exist, as it is now. */
export async function requireTopic(core: Core, topicName: string): Promise<TopicSnapshot> {
  const snapshot = isName(topicName) ? await core.store.readTopic(topicName) : undefined
  if (!snapshot) throw new PmqError('not_found', `there is no topic ${topicName}`)
  return snapshot
}

async function toView(core: Core, { topic, queues, groupNames }: TopicSnapshot): Promise<TopicView> {
  const ends = await Promise.all(queues.map(({ queueId }) => core.findEnd(topic.name, queueId)))
  return {
    ...topic,
    queues: queues.map(({ queueId, readOnlySinceMs }, i) => ({
      queueId,
      readOnly: readOnlySinceMs !== undefined,
      ...(readOnlySinceMs !== undefined && { readOnlySinceMs }),
      nextOffset: ends[i] ?? 1,
    })),
    groups: groupNames,
  }
}

export async function listTopics(core: Core): Promise<TopicListView> {
  return { topics: await listAll(page => core.store.listTopics(page)) }
}
