import * as v from 'valibot'
import { baseRequest, baseResponse, listOf, optional, wholeNumber } from './fields.ts'
import { publishRequest } from './publish.ts'

/** How the messages of a handler call have failed. Of long texts the beginning is kept. */
export const failureCause = v.object({
  /** `threw`, `timed_out`, `returned` (the handler has named them itself), `invalid_result`; another one is kept as well. */
  kind: optional(v.string()),
  /** What there is to say of it, such as the text of an error. */
  text: optional(v.string()),
})

export const failuresRequest = v.object({
  ...baseRequest,
  /** Offsets of a fail queue whose messages were handled after all: their records say so when this is answered. */
  ids: optional(listOf(wholeNumber())),
  /** The queue that the messages were pulled from. */
  queueId: optional(wholeNumber()),
  /** What failed, to the fail topic of the queue's subscription, each with its `retryCount` raised. Needs no token. */
  failMsg: optional(publishRequest),
  /** Why they failed. */
  cause: optional(failureCause),
  /** Under which place and `offsetVersion` the consumer has the queue: who does not have it any more is refused. */
  consumerGroupName: optional(v.string()),
  queueOffsetId: optional(wholeNumber(1)),
  offsetVersion: optional(wholeNumber()),
  consumerId: optional(wholeNumber()),
})

export const failuresResponse = v.object({
  ...baseResponse,
  /** Refused: the queue has another owner by now, or its offset was reset. */
  fenced: v.optional(v.boolean()),
})

export type FailuresRequest = v.InferOutput<typeof failuresRequest>
export type FailureCause = v.InferOutput<typeof failureCause>
export type FailuresResponse = v.InferOutput<typeof failuresResponse>
