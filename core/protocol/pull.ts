import * as v from 'valibot'
import { baseRequest, baseResponse, mapOf, optional, wholeNumber } from './fields.ts'
import { limits } from './limits.ts'

/** PMQ has an answer of its own to numbers that make no sense: they are no wrong types. */
const anyWholeNumber = wholeNumber(Number.MIN_SAFE_INTEGER)

export const pullRequest = v.object({
  ...baseRequest,
  queueId: v.nullish(anyWholeNumber, 0),
  /** Exclusive: the last offset that the consumer has. */
  offsetStart: v.nullish(anyWholeNumber, 0),
  /** Inclusive, as PMQ's clients ask. Not used with `maxBytes`. */
  offsetEnd: optional(anyWholeNumber),
  topicName: optional(v.string()),
  consumerGroupName: optional(v.string()),
  /** Asks by size: whole batches in `batches`, at least one if there is any, as long as they fit. */
  maxBytes: optional(wholeNumber(1, limits.maxPullBytes)),
  /** How long the server may wait for a message when there is none, in milliseconds; it may wait less. */
  waitMs: optional(wholeNumber(0, 60_000)),
  /** Under which place and `offsetVersion` the consumer has the queue: who does not have it any more is refused. */
  queueOffsetId: optional(wholeNumber(1)),
  offsetVersion: optional(wholeNumber()),
  consumerId: optional(wholeNumber()),
})

export const pulledMessage = v.object({
  id: wholeNumber(1),
  tag: v.string(),
  bizId: v.string(),
  head: v.optional(mapOf(v.string())),
  body: v.string(),
  traceId: v.string(),
  retryCount: wholeNumber(),
  sendIp: v.optional(v.string()),
  /** `yyyy-MM-dd HH:mm:ss:SSS` in the service's time zone. */
  sendTime: v.string(),
})

const place = v.tuple([wholeNumber(1), wholeNumber(1)])

/**
 * Where a message of a fail topic comes from: the service's own notes, which travel with it. Consumers make nothing of
 * them, and what they say of it is not read. Queue and offset, wherever there is a place.
 */
export const failureTrail = v.object({
  /** The group that failed, and of which topic. */
  of: v.tuple([v.string(), v.string()]),
  /** Where it was when it failed; if it was resent, where it lay as a dead letter. */
  from: v.optional(place),
  /** Where it failed first, in its topic. Absent: in `from`. */
  origin: v.optional(place),
  /** When and where it came into the fail topic first. Absent: now, and here. */
  first: v.optional(v.tuple([wholeNumber(), wholeNumber(1), wholeNumber(1)])),
  /** If it was resent: how often, when last, how often it had failed by then, and when last. */
  resent: v.optional(v.tuple([wholeNumber(1), wholeNumber(), wholeNumber(), wholeNumber()])),
})

/** A message as a batch carries it: empty fields are left out; its offset is the batch's plus its index. */
export const batchMessage = v.object({
  tag: v.optional(v.string()),
  bizId: v.optional(v.string()),
  head: v.optional(mapOf(v.string())),
  body: v.string(),
  traceId: v.optional(v.string()),
  retryCount: v.optional(wholeNumber()),
  sendIp: v.optional(v.string()),
  key: v.optional(v.string()),
  failed: v.optional(failureTrail),
})

export const pulledBatch = v.object({
  /** Offset of the batch's first message. It may lie at or below `offsetStart`: drop what you have. */
  offset: wholeNumber(1),
  /** When the batch was appended, milliseconds since 1970. */
  time: wholeNumber(),
  msgs: v.array(batchMessage),
})

export const pullResponse = v.object({
  ...baseResponse,
  msgs: v.optional(v.array(pulledMessage)),
  batches: v.optional(v.array(pulledBatch)),
  /** How many offsets were passed over because their messages are past retention. */
  skipped: v.optional(wholeNumber(1)),
  /** The group's current version. */
  version: v.optional(wholeNumber()),
  /** The service's clock, in milliseconds since 1970, in an answer by size: delays are reckoned by it. */
  nowMs: v.optional(wholeNumber()),
  /** Refused: the queue has another owner by now, or its offset was reset. */
  fenced: v.optional(v.boolean()),
})

export type PullRequest = v.InferOutput<typeof pullRequest>
export type PulledMessage = v.InferOutput<typeof pulledMessage>
export type BatchMessage = v.InferOutput<typeof batchMessage>
export type FailureTrail = v.InferOutput<typeof failureTrail>
export type PulledBatch = v.InferOutput<typeof pulledBatch>
export type PullResponse = v.InferOutput<typeof pullResponse>
