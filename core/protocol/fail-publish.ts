import * as v from 'valibot'
import { baseRequest, baseResponse, listOf, mapOf, optional, wholeNumber } from './fields.ts'
import { limits } from './limits.ts'
import { publishRequest } from './publish.ts'

/** A message that a handler has failed on. It was accepted once: its sizes are not looked at again. */
export const failedMessage = v.object({
  /** Its offset in the queue that it was pulled from. */
  id: optional(wholeNumber()),
  tag: optional(v.string()),
  bizId: optional(v.string()),
  head: optional(mapOf(v.string())),
  body: v.string(),
  traceId: optional(v.string()),
  /** How often it has failed, this time included. */
  retryCount: optional(wholeNumber(0, 1_000_000)),
  key: optional(v.string()),
})

export const failMessages = v.object({
  topicName: optional(v.string()),
  msgs: optional(v.pipe(v.array(failedMessage), v.maxLength(limits.maxMessagesPerPublish))),
  publishId: publishRequest.entries.publishId,
  attempt: publishRequest.entries.attempt,
  attemptAgeMs: publishRequest.entries.attemptAgeMs,
})

export const failPublishRequest = v.object({
  ...baseRequest,
  /** Offsets of messages of a fail queue that have succeeded. */
  ids: optional(listOf(wholeNumber())),
  /** The queue that the messages were pulled from. */
  queueId: optional(wholeNumber()),
  failMsg: optional(failMessages),
  /** With these the request is refused where the queue is not owned under this offsetVersion any more. */
  consumerId: optional(wholeNumber()),
  consumerGroupName: optional(v.string()),
  queueOffsetId: optional(wholeNumber(1)),
  offsetVersion: optional(wholeNumber()),
})

export const failPublishResponse = v.object({
  ...baseResponse,
  /** Refused: the queue has another owner by now. */
  fenced: v.optional(v.boolean()),
})

export type FailedMessage = v.InferOutput<typeof failedMessage>
export type FailPublishRequest = v.InferOutput<typeof failPublishRequest>
export type FailPublishResponse = v.InferOutput<typeof failPublishResponse>
