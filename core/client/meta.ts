import type { Core } from '../core.ts'
import { isWritable } from '../log/placement.ts'
import type {
  MetaGroupResponse,
  MetaResponse,
  TopicQueueIdsRequest,
  TopicQueueIdsResponse,
  TopicsOfGroupRequest,
  TopicsOfGroupResponse,
  TopicsOfGroupsRequest,
  TopicsOfGroupsResponse,
} from '../protocol/meta.ts'
import { findTopic, readGroup } from './find.ts'

/** Tells a client to keep to the URL that it has: behind it is the whole service. */
const keepYourUrl = -1

export const getMetaGroup = async (): Promise<MetaGroupResponse> => ({
  suc: true,
  brokerMetaMode: keepYourUrl,
  groupFlag: 0,
  metricUrl: '',
})

export const getMeta = async (): Promise<MetaResponse> => ({ suc: true, brokerMetaMode: keepYourUrl })

export async function getTopic(core: Core, request: TopicsOfGroupRequest): Promise<TopicsOfGroupResponse> {
  const topics = await topicsOf(core, request.consumerGroupName ?? '')
  return { suc: true, ...(topics && { topics }) }
}

export async function getGroupTopic(core: Core, request: TopicsOfGroupsRequest): Promise<TopicsOfGroupsResponse> {
  const groupNames = request.consumerGroupNames ?? []
  const topics = await Promise.all(groupNames.map(name => topicsOf(core, name)))
  const groupTopics = groupNames.flatMap((consumerGroupName, i) => {
    const found = topics[i]
    return found ? [{ consumerGroupName, topics: found }] : []
  })
  return { suc: true, groupTopics }
}

async function topicsOf(core: Core, groupName: string): Promise<string[] | undefined> {
  const snapshot = await readGroup(core, groupName)
  return snapshot?.subscriptions.map(subscription => subscription.topicName)
}

export async function getTopicQueueIds(core: Core, request: TopicQueueIdsRequest): Promise<TopicQueueIdsResponse> {
  const topicNames = request.topicNames ?? []
  if (topicNames.length === 0) return { suc: true }
  const snapshots = await Promise.all(topicNames.map(name => findTopic(core, name)))
  const writable = snapshots
    .filter(snapshot => snapshot !== undefined)
    .map(({ topic, queues }) => [topic.name, queues.filter(isWritable).map(queue => queue.queueId)] as const)
    .filter(([, queueIds]) => queueIds.length > 0)
  // Not by assignment: a topic may be called `__proto__`.
  return { suc: true, topicQueues: Object.fromEntries(writable) }
}
