import type { Core } from '../core.ts'
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
  const snapshot = groupName ? await core.store.readGroup(groupName) : undefined
  return snapshot?.subscriptions.map(subscription => subscription.topicName)
}

export async function getTopicQueueIds(core: Core, request: TopicQueueIdsRequest): Promise<TopicQueueIdsResponse> {
  const topicNames = request.topicNames ?? []
  if (topicNames.length === 0) return { suc: true }
  const snapshots = await Promise.all(topicNames.map(name => core.topics.get(name)))
  const topicQueues: Record<string, number[]> = {}
  for (const snapshot of snapshots) {
    const writable = snapshot?.queues.filter(queue => !queue.readOnly).map(queue => queue.queueId) ?? []
    if (snapshot && writable.length > 0) topicQueues[snapshot.topic.name] = writable
  }
  return { suc: true, topicQueues }
}
