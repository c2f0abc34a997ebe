import * as v from 'valibot'
import { mapOf, text, wholeNumber } from './fields.ts'
import { limits } from './limits.ts'

/** Failed messages, as operators see them and what they do with them. */

export const failedId = v.pipe(
  v.string(),
  v.regex(/^\d{1,15}-\d{1,15}-\d{1,15}$/, 'must be the failedId of a failed message'),
)
export const failedState = v.picklist(['retrying', 'exhausted', 'succeeded', 'dropped'])

const filters = {
  /** The sender's own id of the message. */
  bizId: v.optional(text(limits.maxBizIdLength)),
  /** A part of the error that it failed with last. */
  error: v.optional(text(limits.maxErrorLength)),
  /** When it failed first, in milliseconds since 1970; both ends are included. */
  fromMs: v.optional(wholeNumber()),
  toMs: v.optional(wholeNumber()),
}

export const listFailedRequest = v.strictObject({
  state: v.optional(failedState),
  ...filters,
  /** Which come first, by when they failed first. Default `newest`. */
  order: v.optional(v.picklist(['newest', 'oldest']), 'newest'),
  /** The `next` of the answer before. */
  after: v.optional(failedId),
  limit: v.optional(wholeNumber(1, limits.maxFailedPerPage), 50),
  /** Also count them by state, whatever is looked for: of those in the time that is asked for, the newest 1,000. */
  counts: v.optional(v.boolean(), false),
})

const place = v.object({ queueId: wholeNumber(1), offset: wholeNumber(1) })

const failedFields = {
  failedId: v.string(),
  /** `exhausted` also where the group has gone past it: its settings have changed, or an offset was reset. */
  state: failedState,
  /** Where it is now, in the fail topic. */
  place,
  /** Where it failed first, in its topic. Absent: its client did not say. */
  origin: v.optional(place),
  /** How often it has failed: in all, and since it was resent last. */
  attempts: wholeNumber(),
  retryCount: wholeNumber(),
  resends: wholeNumber(),
  bizId: v.optional(v.string()),
  /** How it failed last, as far as its consumer has told: `threw`, `timed_out`, `returned`, `invalid_result`. */
  errorKind: v.optional(v.string()),
  error: v.optional(v.string()),
  firstFailedAtMs: wholeNumber(),
  lastFailedAtMs: wholeNumber(),
  resentAtMs: v.optional(wholeNumber()),
  /** When its consumer said that it was handled, or somebody has dropped it. */
  settledAtMs: v.optional(wholeNumber()),
  dropReason: v.optional(v.string()),
  /** When it is past retention: until then it is listed, and can be resent. */
  endsAtMs: wholeNumber(),
}
export const failedView = v.object(failedFields)

export const failedListView = v.object({
  failed: v.array(failedView),
  /** There may be more: ask with this as `after`. A page may be short, or empty, and have more behind it. */
  next: v.optional(v.string()),
  counts: v.optional(
    v.object({
      retrying: wholeNumber(),
      exhausted: wholeNumber(),
      succeeded: wholeNumber(),
      dropped: wholeNumber(),
      /** There are more than were counted. */
      isPartial: v.boolean(),
    }),
  ),
})

export const failedDetailView = v.object({
  ...failedFields,
  /** As it is handed out. Absent: it is past retention. */
  message: v.optional(
    v.object({
      body: v.string(),
      tag: v.optional(v.string()),
      bizId: v.optional(v.string()),
      head: v.optional(mapOf(v.string())),
      key: v.optional(v.string()),
      traceId: v.optional(v.string()),
      sendIp: v.optional(v.string()),
    }),
  ),
  /** Its way through the fail topic, the newest 20 places of it: each a failure, or with a `retryCount` of 0 a resend. */
  history: v.array(v.object({ ...place.entries, retryCount: wholeNumber(), atMs: wholeNumber() })),
})

/** Which dead letters: all, those named, or those that all of the filters fit. Everything is meant only where that is said. */
export const failedSelection = v.union([
  v.literal('all'),
  v.strictObject({ failedIds: v.pipe(v.array(failedId), v.minLength(1), v.maxLength(limits.maxFailedPerPage)) }),
  v.pipe(v.strictObject(filters), v.minEntries(1)),
])

const changes = {
  of: failedSelection,
  /** The `next` of the answer before. */
  after: v.optional(failedId),
  /** How many at most, of those that are not named. Default 100. */
  limit: v.optional(wholeNumber(1, limits.maxFailedPerChange), 100),
  /** Only count. Default false. */
  dryRun: v.optional(v.boolean(), false),
}
export const resendFailedRequest = v.strictObject(changes)
export const dropFailedRequest = v.strictObject({
  ...changes,
  /** Why, for who looks later. */
  reason: v.pipe(text(limits.maxReasonLength), v.minLength(1)),
})

export const failedOutcome = v.picklist([
  'resent',
  'dropped',
  /** It is past retention by now. */
  'gone',
  /** It is no dead letter: it is still retried, was handled, or was dropped. */
  'not_exhausted',
  'not_found',
  /** Somebody else is resending it, or something has become of it at this moment. */
  'changed',
  /** The store was not up to it. It may have been done; in half a minute it can be tried again. */
  'unavailable',
])
export const changeFailedView = v.object({
  /** How many dead letters were meant. */
  matched: wholeNumber(),
  /** What has become of each; nothing in a dry run. */
  results: v.array(v.object({ failedId: v.string(), outcome: failedOutcome })),
  /** There may be more: ask with this as `after`. */
  next: v.optional(v.string()),
})

export type ListFailedRequest = v.InferOutput<typeof listFailedRequest>
export type FailedView = v.InferOutput<typeof failedView>
export type FailedListView = v.InferOutput<typeof failedListView>
export type FailedDetailView = v.InferOutput<typeof failedDetailView>
export type FailedSelection = v.InferOutput<typeof failedSelection>
export type ResendFailedRequest = v.InferOutput<typeof resendFailedRequest>
export type DropFailedRequest = v.InferOutput<typeof dropFailedRequest>
export type FailedOutcome = v.InferOutput<typeof failedOutcome>
export type ChangeFailedView = v.InferOutput<typeof changeFailedView>
