import { isName } from '../client/find.ts'
import type { Core } from '../core.ts'
import { makeTopic, removedLately } from '../make-topic.ts'
import type { TopicSnapshot } from '../model.ts'
import type { CreateTopicRequest, TopicListView, TopicView, UpdateTopicRequest } from '../protocol/admin.ts'
import { PmqError } from '../protocol/errors.ts'
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
  const made = await makeTopic(core, { name, retentionMs }, request.queues)
  if (made === 'exists') throw alreadyExists(name)
  if (made === 'removed_lately') throw removedLately(name)
  const empty = made.queues.map(({ queueId }) => ({ queueId, readOnly: false, nextOffset: 1 }))
  return { ...made.topic, queues: empty, groups: [] }
}

/** Sets from which lag on its groups raise an alarm. */
export async function updateTopic(core: Core, topicName: string, request: UpdateTopicRequest): Promise<TopicView> {
  const { failOf } = (await requireTopic(core, topicName)).topic
  if (failOf) {
    const reason = `it has the failures of topic ${failOf.topicName}, which wait for their time`
    throw new PmqError('conflict', `the lag in fail topic ${topicName} has no limit: ${reason}`)
  }
  const { maxLag, maxLagSeconds } = request
  const limits = { ...(maxLag !== undefined && { maxLag }), ...(maxLagSeconds !== undefined && { maxLagSeconds }) }
  if ((await core.store.updateTopic(topicName, limits)) === 'unknown_topic') {
    throw new PmqError('not_found', `there is no topic ${topicName}`)
  }
  core.topics.forget(topicName)
  return getTopicView(core, topicName)
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

async function toView(core: Core, { topic: found, queues, groupNames }: TopicSnapshot): Promise<TopicView> {
  const { additions: _additions, ...topic } = found
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
  const names = await listAll(page => core.store.listTopics(page))
  // No other topic has such a name, so they need not be read.
  return {
    topics: names.filter(name => !reservedEnding.test(name)),
    failTopics: names.filter(name => reservedEnding.test(name)),
  }
}
