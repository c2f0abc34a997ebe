import * as v from 'valibot'
import { baseRequest, baseResponse, mapOf, optional, wholeNumber } from './fields.ts'

export const partitionInfo = v.object({
  queueId: wholeNumber(Number.MIN_SAFE_INTEGER),
  /** 1 (default): this queue or none. 0: another queue will do when this one cannot be written. */
  strictMode: optional(v.picklist([0, 1])),
})

/** Its sizes are no matter of the schema: what is too large is refused as PMQ refuses it, with `suc: false`. */
export const publishMessage = v.object({
  id: optional(wholeNumber()),
  tag: optional(v.string()),
  bizId: optional(v.string()),
  head: optional(mapOf(v.string())),
  body: v.string(),
  traceId: optional(v.string()),
  retryCount: optional(wholeNumber(0, 1_000_000)),
  partitionInfo: optional(partitionInfo),
  /** Messages of one key land in one queue, in publish order. `partitionInfo` wins over it. */
  key: optional(v.string()),
})

export const publishRequest = v.object({
  ...baseRequest,
  topicName: optional(v.string()),
  msgs: optional(v.array(publishMessage)),
  token: optional(v.string()),
  synFlag: optional(v.number()),
  /** The same for every attempt of one publish: it is stored once however often it is sent. */
  publishId: optional(v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 visible ASCII characters'))),
  /** 1 for the first attempt. A higher one makes the server look for an earlier attempt that did arrive. */
  attempt: optional(wholeNumber(1)),
  /** Milliseconds since the first attempt was sent, by the client's own clock: how far back to look. */
  attemptAgeMs: optional(wholeNumber()),
  /** The queue that messages without `key` and `partitionInfo` should go to first. */
  queueId: optional(wholeNumber(1)),
})

/** A run of consecutive messages of the request, from index `first`: either where they are, or why they are not. */
export const publishRun = v.object({
  first: wholeNumber(),
  count: wholeNumber(1),
  queueId: v.optional(wholeNumber(1)),
  /** Offset of the run's first message; the others follow. */
  offset: v.optional(wholeNumber(1)),
  error: v.optional(v.string()),
})

export const publishResponse = v.object({
  ...baseResponse,
  sleepTime: v.number(),
  offsets: v.optional(v.array(publishRun)),
})

export type PublishMessage = v.InferOutput<typeof publishMessage>
export type PublishRequest = v.InferOutput<typeof publishRequest>
export type PublishRun = v.InferOutput<typeof publishRun>
export type PublishResponse = v.InferOutput<typeof publishResponse>
