import * as v from 'valibot'
import { baseRequest, baseResponse, listOf, mapOf, optional, wholeNumber } from './fields.ts'

export const metaGroupRequest = v.object(baseRequest)
export const metaGroupResponse = v.object({
  ...baseResponse,
  brokerIpG1: v.optional(v.array(v.string())),
  brokerIpG2: v.optional(v.array(v.string())),
  /** -1: keep to the URL that you were given. */
  brokerMetaMode: v.number(),
  groupFlag: wholeNumber(),
  metricUrl: v.string(),
})

export const metaRequest = v.object(baseRequest)
export const metaResponse = v.object({
  ...baseResponse,
  brokerIp: v.optional(v.array(v.string())),
  brokerMetaMode: v.number(),
})

export const topicsOfGroupRequest = v.object({ ...baseRequest, consumerGroupName: optional(v.string()) })
export const topicsOfGroupResponse = v.object({ ...baseResponse, topics: v.optional(v.array(v.string())) })

export const topicsOfGroupsRequest = v.object({ ...baseRequest, consumerGroupNames: optional(listOf(v.string())) })
export const topicsOfGroupsResponse = v.object({
  ...baseResponse,
  groupTopics: v.optional(v.array(v.object({ consumerGroupName: v.string(), topics: v.array(v.string()) }))),
})

export const topicQueueIdsRequest = v.object({ ...baseRequest, topicNames: optional(listOf(v.string())) })
export const topicQueueIdsResponse = v.object({
  ...baseResponse,
  /** Topic → its writable queues; unknown topics are left out. */
  topicQueues: v.optional(mapOf(v.array(wholeNumber(1)))),
})

export const messageCountRequest = v.object({
  ...baseRequest,
  consumerGroupName: optional(v.string()),
  topics: optional(listOf(v.string())),
})
export const messageCountResponse = v.object({ ...baseResponse, count: v.optional(wholeNumber()) })

export type MetaGroupResponse = v.InferOutput<typeof metaGroupResponse>
export type MetaResponse = v.InferOutput<typeof metaResponse>
export type TopicsOfGroupRequest = v.InferOutput<typeof topicsOfGroupRequest>
export type TopicsOfGroupResponse = v.InferOutput<typeof topicsOfGroupResponse>
export type TopicsOfGroupsRequest = v.InferOutput<typeof topicsOfGroupsRequest>
export type TopicsOfGroupsResponse = v.InferOutput<typeof topicsOfGroupsResponse>
export type TopicQueueIdsRequest = v.InferOutput<typeof topicQueueIdsRequest>
export type TopicQueueIdsResponse = v.InferOutput<typeof topicQueueIdsResponse>
export type MessageCountRequest = v.InferOutput<typeof messageCountRequest>
export type MessageCountResponse = v.InferOutput<typeof messageCountResponse>
