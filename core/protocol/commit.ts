import * as v from 'valibot'
import { baseRequest, baseResponse, mapOf, optional, wholeNumber } from './fields.ts'
import { limits } from './limits.ts'

export const commitEntry = v.object({
  queueOffsetId: wholeNumber(1),
  offsetVersion: wholeNumber(),
  offset: wholeNumber(),
  consumerGroupName: v.string(),
  topicName: optional(v.string()),
  /**
   * The consumer has nothing of the queue in hand but this message, which it is about to hand out; 0: none is on trial any
   * more. For one that works carefully since `deaths` of its queue say so. Absent: it works as usual.
   */
  trialOffset: optional(wholeNumber()),
  /** How often that one has failed before where it is. Default 0. */
  trialFailures: optional(wholeNumber()),
})

export const commitRequest = v.object({
  ...baseRequest,
  queueOffsets: optional(v.pipe(v.array(commitEntry), v.maxLength(limits.maxCommitsPerRequest))),
  /** 1: the final commit, sent when the consumer has stopped these queues; it gives them up. */
  flag: optional(v.picklist([0, 1])),
})

/** What became of one commit: `advanced`; `unchanged` (a repeat); `fenced` (the queue has another owner by now). */
export const commitResult = v.object({
  queueOffsetId: wholeNumber(1),
  outcome: v.picklist(['advanced', 'unchanged', 'fenced', 'unknown_queue']),
  offsetVersion: v.optional(wholeNumber()),
  offset: v.optional(wholeNumber()),
})

export const commitResponse = v.object({
  ...baseResponse,
  results: v.optional(v.array(commitResult)),
  /** Current version of each group named in the request. */
  versions: v.optional(mapOf(wholeNumber())),
})

export type CommitEntry = v.InferOutput<typeof commitEntry>
export type CommitRequest = v.InferOutput<typeof commitRequest>
export type CommitResult = v.InferOutput<typeof commitResult>
export type CommitResponse = v.InferOutput<typeof commitResponse>
