import * as v from 'valibot'
import { name, text, wholeNumber } from './fields.ts'
import { limits } from './limits.ts'

export const targetKind = v.picklist(['webhook', 'lambda', 'callback'])
export const targetDelivers = v.picklist(['hints', 'messages', 'alarms'])
/** `failing`: it is tried again, less and less often. `disabled`: nothing is sent to it until it is enabled. */
export const targetStatus = v.picklist(['active', 'failing', 'disabled'])
/** `whsec_` and 24 to 64 bytes in base64, as Standard Webhooks has it. */
const secret = v.pipe(
  v.string(),
  v.regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, 'must be whsec_ and the base64 of 24 to 64 bytes'),
)

/** A setting that is not given stays as it is. */
export const putTargetRequest = v.strictObject({
  /**
   * `webhook`: a POST to `url`. `lambda`: an invocation of `functionName`. `callback`: a POST to PMQ's own clients, each at the
   * address and port that its name tells. Default `webhook`.
   */
  kind: v.optional(targetKind),
  /**
   * `hints`: that queues have messages, in PMQ's words; whoever hears it consumes. `messages`: the messages themselves (PMQ's mode
   * 3), which the answer says to be handled or not; only in groups of mode `claimed`. Default `hints`.
   */
  delivers: v.optional(v.picklist(['hints', 'messages'])),
  /** Of a webhook: https, at a public address, without user name and fragment. */
  url: v.optional(v.string()),
  /** Of kind `lambda`: one of those that the operator has allowed. */
  functionName: v.optional(text(limits.maxFunctionNameLength)),
  /** The least time between two hints, in milliseconds. What comes meanwhile is sent at its end, in one. Default 100. */
  minGapMs: v.optional(wholeNumber(0, limits.maxTargetGapMs)),
  /** Of a webhook that is made: what its requests are signed with. Default: one that is made up, which the answer shows. */
  secret: v.optional(secret),
})
export const putAlarmTargetRequest = v.strictObject({
  /** https, at a public address, without user name and fragment. */
  url: v.string(),
  /** Of one that is made: what its requests are signed with. Default: one that is made up, which the answer shows. */
  secret: v.optional(secret),
})

const targetState = v.object({
  status: targetStatus,
  /** How often it has failed in a row. */
  failures: wholeNumber(),
  failingSinceMs: v.optional(wholeNumber()),
  /** Nothing is sent before. */
  nextTrialAtMs: v.optional(wholeNumber()),
  /** `failures`: it has failed for a day, or said that it is gone. */
  disabledBy: v.optional(v.picklist(['operator', 'failures'])),
  disabledAtMs: v.optional(wholeNumber()),
  lastSentAtMs: v.optional(wholeNumber()),
})

export const targetView = v.object({
  name: v.string(),
  kind: targetKind,
  delivers: targetDelivers,
  url: v.optional(v.string()),
  functionName: v.optional(v.string()),
  minGapMs: wholeNumber(),
  createdAtMs: wholeNumber(),
  /** Which secrets sign its requests; what they are is told once, when they are made. */
  secrets: v.array(v.object({ secretId: v.string(), createdAtMs: wholeNumber() })),
  state: targetState,
})
/** With the secret that was made, which is never shown again. */
export const madeTargetView = v.object({ ...targetView.entries, secret: v.optional(v.string()) })
export const targetListView = v.object({ targets: v.array(targetView) })

export const addSecretRequest = v.strictObject({
  /** Default: one that is made up. */
  secret: v.optional(secret),
})
export const secretView = v.object({ secretId: v.string(), secret: v.optional(v.string()), target: targetView })
export const testView = v.object({
  /** What comes of it is among the deliveries under this id, within seconds. */
  deliveryId: v.string(),
})

export const listDeliveriesRequest = v.strictObject({
  /** Only what was sent before, in milliseconds since 1970. */
  beforeMs: v.optional(wholeNumber(0, limits.maxTimeMs)),
  /** How many at most. Default 50. */
  limit: v.optional(wholeNumber(1, limits.maxDeliveriesPerPage), 50),
})
export const deliveryView = v.object({
  /** Of all tries of a delivery the same. */
  deliveryId: v.string(),
  atMs: wholeNumber(),
  durationMs: wholeNumber(),
  outcome: v.picklist(['succeeded', 'failed']),
  what: v.picklist(['hint', 'messages', 'alarm', 'test']),
  queueIds: v.optional(v.array(wholeNumber(1))),
  /** How many messages were handed on. */
  messages: v.optional(wholeNumber()),
  /** Of HTTP. */
  status: v.optional(wholeNumber()),
  error: v.optional(v.string()),
  /** The beginning of what the target answered, 1 KB at most. It may hold anything, so whoever shows it has to escape it. */
  answer: v.optional(v.string()),
})
export const deliveryListView = v.object({
  /** Newest first. */
  deliveries: v.array(deliveryView),
  /** Absent: there are no older ones; else give it as `beforeMs`. */
  next: v.optional(wholeNumber()),
})

export type PutTargetRequest = v.InferOutput<typeof putTargetRequest>
export type PutAlarmTargetRequest = v.InferOutput<typeof putAlarmTargetRequest>
export type AddSecretRequest = v.InferOutput<typeof addSecretRequest>
export type ListDeliveriesRequest = v.InferOutput<typeof listDeliveriesRequest>
export type TargetView = v.InferOutput<typeof targetView>
export type MadeTargetView = v.InferOutput<typeof madeTargetView>
export type SecretView = v.InferOutput<typeof secretView>
export type DeliveryListView = v.InferOutput<typeof deliveryListView>

/** The name of a target is one as of topics. */
export const isTargetName = (given: string) => v.is(name, given)
