import * as v from 'valibot'
import { name, text, wholeNumber } from './fields.ts'
import { limits } from './limits.ts'
import { targetDelivers, targetKind, targetStatus } from './targets.ts'

export const createTopicRequest = v.strictObject({
  name,
  /** Number of queues, 1 to 1000. Default 4. */
  queues: v.optional(wholeNumber(1, limits.maxQueuesPerTopic), 4),
  /** How long messages are kept, in milliseconds. Default 7 days. */
  retentionMs: v.optional(wholeNumber(limits.minRetentionMs, limits.maxRetentionMs), 7 * 86_400_000),
})

const topicLag = {
  /** More messages than this that wait for a group raise an alarm, unless its subscription has a limit of its own; 0: none. Default 0. */
  maxLag: v.optional(wholeNumber(0)),
  /** A message that waits for longer, in seconds, raises one; 0: none. Default 0. */
  maxLagSeconds: v.optional(wholeNumber(0, limits.maxRetentionMs / 1000)),
}
/** Limits whose crossing raises an alarm. A setting that is not given stays as it is. */
export const updateTopicRequest = v.strictObject(topicLag)

export const addQueuesRequest = v.strictObject({
  /** How many; a topic has 1000 at most. Default 1. Messages of a key may go to another queue than before. */
  count: v.optional(wholeNumber(1, limits.maxQueuesPerTopic), 1),
})
export const changeQueueRequest = v.strictObject({
  /** A read-only queue is consumed, but nothing is appended to it. */
  readOnly: v.boolean(),
})

export const queueView = v.object({
  queueId: wholeNumber(1),
  readOnly: v.boolean(),
  /** Since when it is read-only, in milliseconds since 1970. */
  readOnlySinceMs: v.optional(wholeNumber()),
  /** The offset that the next message will get. */
  nextOffset: wholeNumber(1),
})
export const topicView = v.object({
  name: v.string(),
  topicId: wholeNumber(1),
  retentionMs: wholeNumber(),
  createdAtMs: wholeNumber(),
  /** It is a fail topic: it holds what this group failed to handle of this topic. */
  failOf: v.optional(v.object({ groupName: v.string(), topicName: v.string() })),
  ...topicLag,
  queues: v.array(queueView),
  /** Groups that subscribe to it. */
  groups: v.array(v.string()),
})
export const topicListView = v.object({
  topics: v.array(v.string()),
  /** The fail topics of groups' subscriptions. */
  failTopics: v.array(v.string()),
})

const ipRanges = v.pipe(v.array(text(limits.maxIpRangeLength)), v.maxLength(limits.maxIpRanges))

/** Who of a group's members may be given queues; the others are on standby. A setting that is not given stays as it is. */
const groupSettings = {
  /** IP addresses and ranges (CIDR) that may; empty: all. Default empty. */
  allowedIps: v.optional(ipRanges),
  /** IP addresses and ranges that may not, whatever is allowed. Default empty. */
  deniedIps: v.optional(ipRanges),
  /** So many members at most, those that joined first; 0: any number. Default 0. */
  maxConsumers: v.optional(wholeNumber(0, limits.maxConsumersPerGroup)),
}
const groupMode = v.picklist(['balanced', 'claimed', 'broadcast'])

export const createGroupRequest = v.strictObject({
  name,
  /**
   * `balanced`: its queues are shared out among its members. `claimed`: they are claimed for a time, by consumers that are
   * not always there. `broadcast`: each member gets everything, from when it joins. For ever. Default `balanced`.
   */
  mode: v.optional(groupMode, 'balanced'),
  ...groupSettings,
})
export const updateGroupRequest = v.strictObject({
  /** May be given, and must be the group's then. */
  mode: v.optional(groupMode),
  ...groupSettings,
})
export const groupListView = v.object({ groups: v.array(v.string()) })

const seconds = wholeNumber(0, limits.maxDelaySeconds)
const subscriptionSettings = {
  /** Handler calls at once for one queue. Default 5. */
  threadSize: wholeNumber(1, limits.maxThreadSize),
  /** Messages given to one handler call. Default 1. */
  consumerBatchSize: wholeNumber(1, limits.maxConsumerBatchSize),
  /** Width of the window that a PMQ client pulls, in offsets. Default 50. */
  pullBatchSize: wholeNumber(1, limits.maxPullMessages),
  /** The longest pause between two pulls of an empty queue, in seconds. Default 5. */
  maxPullTimeSeconds: wholeNumber(1, limits.maxMaxPullTimeSeconds),
  /** Only messages with one of these tags, separated by commas, are handled. Default empty: all are. */
  tag: text(limits.maxTagListLength),
  /** Messages are handled so long after they were appended, in seconds. Default 0. */
  delayProcessTimeSeconds: seconds,
  /** How long a handler call may take before it counts as failed, in seconds; 0: as long as it likes. Default 0. */
  timeoutSeconds: seconds,
  /** A message that failed is handled so many times more. Then it is a dead letter. Default 3. */
  retryCount: wholeNumber(0, limits.maxRetryCount),
  /** How long after a failure it is handled again, in seconds. Default 60. */
  retryDelaySeconds: seconds,
  /** What that is multiplied with for each further failure. Default 1: it stays the same. */
  retryBackoffRate: v.pipe(v.number(), v.minValue(1), v.maxValue(limits.maxRetryBackoffRate)),
  /** The most that it grows to, in seconds; not below `retryDelaySeconds`. Default 3600. */
  maxRetryDelaySeconds: seconds,
  /**
   * Strict order: a failed message is handled again where it is, and the queue waits for it. PMQ's clients do not know of
   * it. Default false.
   */
  retryInPlace: v.boolean(),
  /** PMQ's clients report each step that they take. Default false. */
  trace: v.boolean(),
  /** More messages than this that wait in the topic raise an alarm; 0: what the topic says. Default 0. */
  maxLag: wholeNumber(0),
  /** A message that waits for longer, in seconds, raises one; 0: what the topic says. Default 0. */
  maxLagSeconds: wholeNumber(0, limits.maxRetentionMs / 1000),
}

/** Settings of a subscription. A setting that is not given stays as it is. Changing them needs no restart. */
export const subscribeRequest = v.partial(v.strictObject(subscriptionSettings))

export const subscriptionView = v.object({
  topicName: v.string(),
  /** Where messages go that failed, and from which they are handled again. Absent: they are repeated where they are. */
  failTopicName: v.optional(v.string()),
  ...subscriptionSettings,
})
export const memberView = v.object({
  consumerId: wholeNumber(1),
  consumerName: v.string(),
  ip: v.string(),
  /** The place that it takes, across restarts. */
  instanceId: v.optional(v.string()),
  topics: v.array(v.string()),
  heartbeatAtMs: v.optional(wholeNumber()),
  /** It may not be given queues: its address is denied or not allowed, or the group has enough members. */
  isStandby: v.boolean(),
})
export const groupQueueView = v.object({
  topicName: v.string(),
  /** It is of a fail topic: the topic whose failures are in it. */
  originTopicName: v.optional(v.string()),
  queueId: wholeNumber(1),
  queueOffsetId: wholeNumber(1),
  offset: wholeNumber(),
  offsetVersion: wholeNumber(),
  /** Name of the consumer that owns the queue; absent: nobody does. */
  consumerName: v.optional(v.string()),
  /** The place in the group that its owner has taken. */
  instanceId: v.optional(v.string()),
  /** Who has claimed the queue, and until when. */
  claimant: v.optional(v.string()),
  claimedUntilMs: v.optional(wholeNumber()),
  isStopped: v.boolean(),
  /** Newest offset minus committed offset. */
  lag: wholeNumber(),
  /** When the oldest message was published that is not committed. Absent: there is none. */
  waitingSinceMs: v.optional(wholeNumber()),
  /** So many of them are past retention, and nobody will see them. Absent: none is. */
  lost: v.optional(wholeNumber(1)),
  /** When progress was last committed. Absent: never. */
  committedAtMs: v.optional(wholeNumber()),
  /** Messages have been waiting for a minute, and nothing was committed in that time. */
  isStalled: v.boolean(),
  /** So many owners in a row were lost while the offset stayed where it is. Absent: none was. */
  deaths: v.optional(wholeNumber(1)),
  /** The message that the last of them had in hand alone. */
  suspectOffset: v.optional(wholeNumber(1)),
  /** So many were lost with it, while it stayed where it is. */
  suspectFailures: v.optional(wholeNumber(1)),
})
export const groupView = v.object({
  name: v.string(),
  mode: groupMode,
  allowedIps: v.array(v.string()),
  deniedIps: v.array(v.string()),
  maxConsumers: wholeNumber(),
  /** The group that it is a copy of, for one sub-environment or one consumer. */
  origin: v.optional(
    v.object({ groupName: v.string(), subEnv: v.optional(v.string()), consumerId: v.optional(wholeNumber(1)) }),
  ),
  /** Its copies for sub-environments. */
  copies: v.array(v.object({ groupName: v.string(), subEnv: v.string() })),
  rbVersion: wholeNumber(),
  metaVersion: wholeNumber(),
  version: wholeNumber(),
  subscriptions: v.array(subscriptionView),
  /** Topics of which no member that may be given queues has a handler: their messages wait. */
  unhandledTopics: v.array(v.string()),
  members: v.array(memberView),
  queues: v.array(groupQueueView),
  /** What its hints or messages are sent to. */
  targets: v.array(
    v.object({
      name: v.string(),
      kind: targetKind,
      delivers: targetDelivers,
      status: targetStatus,
    }),
  ),
})

/** Which of a group's queues: all of them, those of a topic, or one. */
export const selection = v.union([
  v.literal('all'),
  v.strictObject({ topicName: name }),
  v.strictObject({ queueId: wholeNumber(1) }),
])

export const resetRequest = v.strictObject({
  /** Fail topics are reset only where one is named, or a queue of it. */
  of: selection,
  /** `start`: everything that there is; `end`: only what comes; an offset: the last one not to be seen again; a time. */
  to: v.union([
    v.picklist(['start', 'end']),
    v.strictObject({ offset: wholeNumber() }),
    v.strictObject({ timeMs: wholeNumber() }),
  ]),
  /** Only tell what would happen. Default false. */
  dryRun: v.optional(v.boolean(), false),
})
export const resetView = v.object({
  queues: v.array(
    v.object({
      topicName: v.string(),
      queueId: wholeNumber(1),
      from: wholeNumber(),
      to: wholeNumber(),
      /** Offsets that the group will not be handed, and that it will be handed again. */
      skips: wholeNumber(),
      repeats: wholeNumber(),
    }),
  ),
})
export const changeStopRequest = v.strictObject({
  /** A topic is meant with its fail topic. */
  of: selection,
})

export const removedView = v.object({ removed: v.string() })

export const errorBody = v.object({
  code: v.string(),
  message: v.string(),
  requestId: v.optional(v.string()),
})

export type UpdateTopicRequest = v.InferOutput<typeof updateTopicRequest>
export type CreateTopicRequest = v.InferOutput<typeof createTopicRequest>
export type TopicView = v.InferOutput<typeof topicView>
export type TopicListView = v.InferOutput<typeof topicListView>
export type CreateGroupRequest = v.InferOutput<typeof createGroupRequest>
export type UpdateGroupRequest = v.InferOutput<typeof updateGroupRequest>
export type AddQueuesRequest = v.InferOutput<typeof addQueuesRequest>
export type ChangeQueueRequest = v.InferOutput<typeof changeQueueRequest>
export type GroupListView = v.InferOutput<typeof groupListView>
export type Selection = v.InferOutput<typeof selection>
export type ResetRequest = v.InferOutput<typeof resetRequest>
export type ResetView = v.InferOutput<typeof resetView>
export type ChangeStopRequest = v.InferOutput<typeof changeStopRequest>
export type SubscribeRequest = v.InferOutput<typeof subscribeRequest>
export type SubscriptionView = v.InferOutput<typeof subscriptionView>
export type GroupView = v.InferOutput<typeof groupView>
export type GroupQueueView = v.InferOutput<typeof groupQueueView>
