import * as v from 'valibot'
import { baseRequest, baseResponse, listOf, mapOf, name, optional, text, wholeNumber } from './fields.ts'
import { limits } from './limits.ts'

export const registerRequest = v.object({
  ...baseRequest,
  name: optional(text(limits.maxConsumerNameLength)),
})
export const registerResponse = v.object({ ...baseResponse, id: v.optional(wholeNumber()) })

export const registerGroupRequest = v.object({
  ...baseRequest,
  consumerId: optional(wholeNumber()),
  consumerName: optional(text(limits.maxConsumerNameLength)),
  subEnv: optional(v.string()),
  /** Group → the topics that the consumer has a handler for. */
  consumerGroupNames: optional(mapOf(optional(listOf(v.string())))),
  /**
   * Names the place that this consumer takes, across restarts: the one that had it before is let go, and its queues are
   * this one's at once.
   */
  instanceId: optional(name),
  /** The consumer was given up, and comes back: it does not take back a place that was taken meanwhile. */
  returning: optional(v.boolean()),
})
export const registerGroupResponse = v.object({
  ...baseResponse,
  broadcastConsumerGroupName: v.optional(mapOf(v.string())),
  consumerGroupNameNew: v.optional(mapOf(v.string())),
  /** By the names of groups that are theirs for this consumer, the topics that it handles and they do not subscribe to. */
  notSubscribed: v.optional(mapOf(v.array(v.string()))),
  /** Refused: the consumer comes back to a place that another one has taken. It should end. */
  replaced: v.optional(v.boolean()),
})

export const deregisterRequest = v.object({
  ...baseRequest,
  id: optional(wholeNumber()),
  /** It has stopped in order and stays a member: its place waits for the next one of its `instanceId`, or the time-out. */
  keepsPlace: optional(v.boolean()),
})
export const deregisterResponse = v.object(baseResponse)

export const heartbeatRequest = v.object({
  ...baseRequest,
  consumerId: optional(wholeNumber()),
  consumerIds: optional(listOf(wholeNumber())),
  asyn: optional(v.picklist([0, 1])),
})
export const heartbeatResponse = v.object({
  ...baseResponse,
  /** Seconds between heartbeats (PMQ's spelling). */
  heatbeatTime: wholeNumber(),
  /** 1: the consumer was given up; it has to register again. */
  deleted: v.picklist([0, 1]),
  bakUrl: v.string(),
  /** Current version of each group of the consumer. */
  versions: v.optional(v.pipe(mapOf(wholeNumber()), v.maxEntries(limits.maxGroupsPerConsumer))),
})

export const pollRequest = v.object({
  ...baseRequest,
  consumerId: optional(wholeNumber()),
  consumerGroupVersion: optional(v.pipe(mapOf(wholeNumber()), v.maxEntries(limits.maxGroupsPerConsumer))),
  /** How long the server may hold the request, in milliseconds; 0: answer at once. Default: as long as it likes. */
  waitMs: optional(wholeNumber(0, 60_000)),
})

/** A queue assigned to the asking consumer, with the settings of its subscription. Times are in seconds. */
export const assignedQueue = v.object({
  queueOffsetId: wholeNumber(1),
  offsetVersion: wholeNumber(),
  offset: wholeNumber(),
  consumerGroupName: v.string(),
  topicName: v.string(),
  queueId: wholeNumber(1),
  originTopicName: v.string(),
  topicType: v.picklist([1, 2]),
  topicId: wholeNumber(1),
  /** How long after its append a message may be handled, by the service's clock (`nowMs` of a pull). */
  delayProcessTime: wholeNumber(),
  threadSize: wholeNumber(1),
  pullBatchSize: wholeNumber(1),
  consumerBatchSize: wholeNumber(1),
  /**
   * One more than a failed message is handled: a consumer handles a message of a fail queue only while that one's own
   * `retryCount` is below, and stores a failed one in the fail topic up to this number.
   */
  retryCount: wholeNumber(),
  stopFlag: v.picklist([0, 1]),
  traceFlag: v.picklist([0, 1]),
  lastId: wholeNumber(),
  maxPullTime: wholeNumber(1),
  /** The longest that a handler call may take; 0: as long as it likes. */
  timeout: wholeNumber(),
  /** Only messages with one of these tags, separated by commas, are handled. Absent: all are. */
  tag: v.optional(v.string()),
  /** Where failures of this queue go. Absent: they are handled again where they are, for ever. */
  failTopicName: v.optional(v.string()),
  /** Of a fail queue: what the delay grows by with each retry, up to `maxRetryDelay`. */
  retryBackoffRate: v.optional(v.number()),
  maxRetryDelay: v.optional(wholeNumber()),
  /** Failed messages are handled again where they are before they go to the fail topic. */
  retryInPlace: v.optional(v.boolean()),
  /**
   * So many owners in a row were lost while `offset` stayed where it is: a message may be ending their processes. Absent:
   * none was.
   */
  deaths: v.optional(wholeNumber(1)),
  /** The last of them had this message in hand alone. Absent: nobody knows which it was. */
  suspectOffset: v.optional(wholeNumber(1)),
  /** So many owners were lost with it, while it stayed where it is. */
  suspectFailures: v.optional(wholeNumber(1)),
})
export const groupMeta = v.object({
  name: v.string(),
  rbVersion: wholeNumber(),
  metaVersion: wholeNumber(),
  version: wholeNumber(),
})
export const polledGroup = v.object({ meta: groupMeta, queues: mapOf(assignedQueue) })
export const pollResponse = v.object({
  ...baseResponse,
  sleepTime: wholeNumber(),
  consumerGroups: v.optional(mapOf(polledGroup)),
  consumerDeleted: v.picklist([0, 1]),
  brokerMetaMode: v.number(),
  /** One of these groups is changing hands: who waits for queues should ask again soon. */
  changing: v.optional(v.boolean()),
  /** By group, the sub-environments that have consumers in it; only where there are sub-environments. */
  consumerGroupSubEnvMap: v.optional(mapOf(v.array(v.string()))),
})

export type RegisterRequest = v.InferOutput<typeof registerRequest>
export type RegisterResponse = v.InferOutput<typeof registerResponse>
export type RegisterGroupRequest = v.InferOutput<typeof registerGroupRequest>
export type RegisterGroupResponse = v.InferOutput<typeof registerGroupResponse>
export type DeregisterRequest = v.InferOutput<typeof deregisterRequest>
export type DeregisterResponse = v.InferOutput<typeof deregisterResponse>
export type HeartbeatRequest = v.InferOutput<typeof heartbeatRequest>
export type HeartbeatResponse = v.InferOutput<typeof heartbeatResponse>
export type PollRequest = v.InferOutput<typeof pollRequest>
export type AssignedQueue = v.InferOutput<typeof assignedQueue>
export type GroupMeta = v.InferOutput<typeof groupMeta>
export type PolledGroup = v.InferOutput<typeof polledGroup>
export type PollResponse = v.InferOutput<typeof pollResponse>
