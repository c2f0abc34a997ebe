import type { Core } from '../core.ts'
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
    return { topicName: name, queueId: firstQueueId + i, readOnly: false, checkpoint: 1 }
  })
  const topic = { name, topicId, retentionMs, createdAtMs: core.clock.now() }
  const outcome = await core.store.createTopic(topic, queues.slice(0, maxQueuesAtOnce))
  if (outcome === 'exists') throw alreadyExists(name)
  for (const queue of queues.slice(maxQueuesAtOnce)) await core.store.addQueue(queue)
  return getTopicView(core, name)
}

const alreadyExists = (name: string) => new PmqError('already_exists', `topic ${name} exists already`)

export async function getTopicView(core: Core, topicName: string): Promise<TopicView> {
  const snapshot = await core.store.readTopic(topicName)
  if (!snapshot) throw topicNotFound(topicName)
  return toView(core, snapshot)
}

export const topicNotFound = (topicName: string) => new PmqError('not_found', `there is no topic ${topicName}`)

async function toView(core: Core, { topic, queues, groupNames }: TopicSnapshot): Promise<TopicView> {
  const ends = await Promise.all(queues.map(({ queueId }) => core.findEnd(topic.name, queueId)))
  return {
    ...topic,
    queues: queues.map(({ queueId, readOnly }, i) => ({ queueId, readOnly, nextOffset: ends[i] ?? 1 })),
    groups: groupNames,
  }
}

export async function listTopics(core: Core): Promise<TopicListView> {
  return { topics: await listAll(page => core.store.listTopics(page)) }
}
