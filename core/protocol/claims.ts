import * as v from 'valibot'
import { baseRequest, baseResponse, listOf, mapOf, optional, text, wholeNumber } from './fields.ts'
import { limits } from './limits.ts'
import { assignedQueue } from './membership.ts'

const leaseMs = v.nullish(wholeNumber(limits.minLeaseMs, limits.maxLeaseMs), 60_000)

export const claimRequest = v.object({
  ...baseRequest,
  consumerGroupName: v.string(),
  /** Who claims, for people to read. */
  claimant: v.pipe(text(limits.maxConsumerNameLength), v.minLength(1)),
  /** Claims so many queues at most. Default 1. */
  maxQueues: v.nullish(wholeNumber(1, limits.maxQueuesPerClaim), 1),
  /** How long the claim lasts unless it is renewed, in milliseconds. Default 60 000. */
  leaseMs,
  /** Only queues of these topics and of their fail topics. Default: of all that the group subscribes to. */
  topicNames: optional(listOf(v.string())),
  /** Only these queues. */
  queueIds: optional(listOf(wholeNumber(1))),
  /** None of these queues, such as those that the claimant has found to have nothing that is due. */
  exceptQueueIds: optional(listOf(wholeNumber(1))),
  /**
   * The queues that the claimant knows that it holds. Others that are held in its name it did not hear of, since an answer
   * was lost: it may claim them again at once. Only for a claimant whose name is nobody else's.
   */
  holdingQueueIds: optional(listOf(wholeNumber(1))),
})
export const claimResponse = v.object({
  ...baseResponse,
  /** By queue id, what was claimed. Empty: there is nothing to read that nobody holds. */
  queues: v.optional(mapOf(assignedQueue)),
  leaseMs: v.optional(wholeNumber()),
  /** The group's current version. */
  version: v.optional(wholeNumber()),
})

export const renewRequest = v.object({
  ...baseRequest,
  consumerGroupName: v.string(),
  /** From now on, in milliseconds. Default 60 000. */
  leaseMs,
  queues: listOf(v.object({ queueOffsetId: wholeNumber(1), offsetVersion: wholeNumber() })),
})

/** What became of one claim: `renewed`, or `fenced` (somebody else has claimed the queue, or it was reset or given up). */
export const renewResult = v.object({
  queueOffsetId: wholeNumber(1),
  outcome: v.picklist(['renewed', 'fenced']),
  /** 1: the queue was stopped. Finish and give it up. */
  stopFlag: v.optional(v.picklist([0, 1])),
})
export const renewResponse = v.object({
  ...baseResponse,
  results: v.optional(v.array(renewResult)),
  leaseMs: v.optional(wholeNumber()),
  version: v.optional(wholeNumber()),
})

export type ClaimRequest = v.InferOutput<typeof claimRequest>
export type ClaimResponse = v.InferOutput<typeof claimResponse>
export type RenewRequest = v.InferOutput<typeof renewRequest>
export type RenewResult = v.InferOutput<typeof renewResult>
export type RenewResponse = v.InferOutput<typeof renewResponse>
