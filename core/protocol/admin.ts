import * as v from 'valibot'
import { name, wholeNumber } from './fields.ts'
import { limits } from './limits.ts'

export const createTopicRequest = v.strictObject({
  name,
  /** Number of queues, 1 to 1000. Default 4. */
  queues: v.optional(wholeNumber(1, limits.maxQueuesPerTopic), 4),
  /** How long messages are kept, in milliseconds. Default 7 days. */
  retentionMs: v.optional(wholeNumber(limits.minRetentionMs, limits.maxRetentionMs), 7 * 86_400_000),
})

export const queueView = v.object({
  queueId: wholeNumber(1),
  readOnly: v.boolean(),
  /** The offset that the next message will get. */
  nextOffset: wholeNumber(1),
})
export const topicView = v.object({
  name: v.string(),
  topicId: wholeNumber(1),
  retentionMs: wholeNumber(),
  createdAtMs: wholeNumber(),
  queues: v.array(queueView),
  /** Groups that subscribe to it. */
  groups: v.array(v.string()),
})
export const topicListView = v.object({ topics: v.array(v.string()) })

export const createGroupRequest = v.strictObject({ name })
export const groupListView = v.object({ groups: v.array(v.string()) })

/** Settings of a subscription: how a consumer works through the topic's queues. Changing them needs no restart. */
export const subscribeRequest = v.strictObject({
  /** Handler calls at once for one queue. Default 5. */
  threadSize: v.optional(wholeNumber(1, limits.maxThreadSize)),
  /** Messages given to one handler call. Default 1. */
  consumerBatchSize: v.optional(wholeNumber(1, limits.maxConsumerBatchSize)),
  /** Width of the window that a PMQ client pulls, in offsets. Default 50. */
  pullBatchSize: v.optional(wholeNumber(1, limits.maxPullMessages)),
  /** The longest pause between two pulls of an empty queue, in seconds. Default 5. */
  maxPullTimeSeconds: v.optional(wholeNumber(1, limits.maxMaxPullTimeSeconds)),
})

export const subscriptionView = v.object({
  topicName: v.string(),
  threadSize: wholeNumber(1),
  consumerBatchSize: wholeNumber(1),
  pullBatchSize: wholeNumber(1),
  maxPullTimeSeconds: wholeNumber(1),
})
export const memberView = v.object({
  consumerId: wholeNumber(1),
  consumerName: v.string(),
  topics: v.array(v.string()),
  heartbeatAtMs: v.optional(wholeNumber()),
})
export const groupQueueView = v.object({
  topicName: v.string(),
  queueId: wholeNumber(1),
  queueOffsetId: wholeNumber(1),
  offset: wholeNumber(),
  offsetVersion: wholeNumber(),
  /** Name of the consumer that owns the queue; absent: nobody does. */
  consumerName: v.optional(v.string()),
  isStopped: v.boolean(),
  /** Newest offset minus committed offset. */
  lag: wholeNumber(),
})
export const groupView = v.object({
  name: v.string(),
  rbVersion: wholeNumber(),
  metaVersion: wholeNumber(),
  version: wholeNumber(),
  subscriptions: v.array(subscriptionView),
  members: v.array(memberView),
  queues: v.array(groupQueueView),
})

/** Which of a group's queues: all of them, those of a topic, or one. */
export const selection = v.union([
  v.literal('all'),
  v.strictObject({ topicName: name }),
  v.strictObject({ queueId: wholeNumber(1) }),
])

export const resetRequest = v.strictObject({
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
export const changeStopRequest = v.strictObject({ of: selection })

export const errorBody = v.object({
  code: v.string(),
  message: v.string(),
  requestId: v.optional(v.string()),
})

export type CreateTopicRequest = v.InferOutput<typeof createTopicRequest>
export type TopicView = v.InferOutput<typeof topicView>
export type TopicListView = v.InferOutput<typeof topicListView>
export type CreateGroupRequest = v.InferOutput<typeof createGroupRequest>
export type GroupListView = v.InferOutput<typeof groupListView>
export type Selection = v.InferOutput<typeof selection>
export type ResetRequest = v.InferOutput<typeof resetRequest>
export type ResetView = v.InferOutput<typeof resetView>
export type ChangeStopRequest = v.InferOutput<typeof changeStopRequest>
export type SubscribeRequest = v.InferOutput<typeof subscribeRequest>
export type SubscriptionView = v.InferOutput<typeof subscriptionView>
export type GroupView = v.InferOutput<typeof groupView>
export type GroupQueueView = v.InferOutput<typeof groupQueueView>
