/** Whose targets they are: a group's, which are sent its hints or messages, or those that alarms are sent to. */
export type TargetOwner = { groupName: string } | 'alarms'

/** One target of an owner. */
export type TargetRef = { owner: TargetOwner; name: string }

/** Where a group's hints or messages are sent, or alarms. */
export type Target = TargetRef &
  TargetSettings & {
    secrets: TargetSecret[]
    createdAtMs: number
    /** Rises with each change of anything of it, so that who changes it has seen what is there. */
    revision: number
    state: TargetState
  }

/** `value`: `whsec_…`, of Standard Webhooks; several while they are rotated. It never leaves after it was made. */
export type TargetSecret = { secretId: string; value: string; createdAtMs: number }

export type TargetSettings = {
  /** `callback`: PMQ's own clients, at the address and port of which each consumer's name tells. */
  kind: 'webhook' | 'lambda' | 'callback'
  /** `messages`: a push group, PMQ's mode 3; only for groups of mode `claimed`, and of the kinds `webhook` and `lambda`. */
  delivers: 'hints' | 'messages'
  url?: string
  functionName?: string
  /** Hints are sent with a gap of so many milliseconds at least; what comes meanwhile is sent at its end, in one. */
  minGapMs: number
}

/**
 * How it goes with a target. Whoever sends to it changes this first, if it is as he read it (`revision`).
 *
 * | | is there while |
 * |---|---|
 * | `failingSinceMs`, `openUntilMs` | it fails: nothing is sent before `openUntilMs`, then one trial |
 * | `pending` | these queues have got messages that no hint has told of |
 * | `wakeAtMs` | a job of this time is under way, which sends what is pending and repeats what has failed |
 * | `delivery` | it was begun by the job `wakeAtMs`, or has failed: it is repeated under its id until it succeeds |
 */
export type TargetState = {
  /** When a hint was sent last. */
  sentAtMs?: number
  pending: PendingQueue[]
  wakeAtMs?: number
  delivery?: { deliveryId: string; queueIds: number[]; wakeAtMs?: number }
  /** How often it has failed in a row. */
  failures: number
  failingSinceMs?: number
  openUntilMs?: number
  isDisabled: boolean
  disabledBy?: 'operator' | 'failures'
  disabledAtMs?: number
}

/**
 * A queue that is to be told of. Its messages become due from `dueAtMs` to `lastDueAtMs`, which are the same where nothing
 * delays them.
 */
export type PendingQueue = { queueId: number; dueAtMs: number; lastDueAtMs: number }

/** A request to a target, and what has become of it; kept for `deliveriesKeptMs`. */
export type Delivery = {
  /** Of all tries the same. */
  deliveryId: string
  atMs: number
  durationMs: number
  outcome: 'succeeded' | 'failed'
  /** What was sent: hints of queues, messages of a queue, an alarm, an operator's test. */
  what: 'hint' | 'messages' | 'alarm' | 'test'
  queueIds?: number[]
  messages?: number
  /** Of HTTP. */
  status?: number
  /** Why it has failed, in our words. */
  error?: string
  /** The beginning of what the target answered, as it was sent: for those alone who may see the target, and to be escaped. */
  answer?: string
}

/** Seven days. */
export const deliveriesKeptMs = 7 * 86_400_000
/** In bytes of UTF-8. */
export const maxAnswerKept = 1_024

export const freshState: TargetState = { pending: [], failures: 0, isDisabled: false }
