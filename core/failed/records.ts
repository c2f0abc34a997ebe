/**
 * What is remembered of a message that a group failed to handle: from its first failure until it is gone from the fail
 * topic. Never its body, which is in the log. All of it but the error follows from the message in the log (`trail.ts`), so
 * writing a record again, or a later one first, comes to the same.
 *
 * | state | means | entered by | left by |
 * |---|---|---|---|
 * | `retrying` | it waits in the fail topic to be handled | a failure, while its count is not above the subscription's `retryCount`; a resend | handled → `succeeded`; failed → `retrying` again, or `exhausted` |
 * | `exhausted` | a dead letter: it stays in the fail topic, and nobody handles it | a failure that was the last one | resend → `retrying`; drop → `dropped` |
 * | `succeeded` | it was handled after all | the consumer confirms it | only if it is handled again and fails (an offset was reset) → `retrying`, `exhausted` |
 * | `dropped` | an operator has given it up, and said why | drop | as `succeeded` |
 *
 * One that is `retrying` behind what its group has committed, unconfirmed, was passed over: settings have changed, or an
 * offset was reset. Whoever reads it takes it for `exhausted` (`view.ts`); nothing is written for that.
 *
 * A message that is handed out twice (its consumer died between the fail topic and its commit) may be in the fail topic
 * twice, and each copy goes its own way. Where both have come from one copy there, they share a record: it tells of the one
 * that has got farther.
 */
export type FailedState = 'retrying' | 'exhausted' | 'succeeded' | 'dropped'

/** Where and when it came into the fail topic for the first time: what its record is called, and sorted by. */
export type FirstPlace = { atMs: number; queueId: number; offset: number }

/** In which order records are. */
export const compareFirst = (a: FirstPlace, b: FirstPlace): number =>
  a.atMs - b.atMs || a.queueId - b.queueId || a.offset - b.offset

export type Place = { queueId: number; offset: number }

export type FailedMessage = {
  groupName: string
  topicName: string
  first: FirstPlace
  /** Where it failed first, in its topic. Absent: its client did not say. */
  origin?: Place
  state: FailedState
  /** How often it was resent, and how often it has failed since: the two tell which of two records is the later one. */
  resends: number
  retryCount: number
  /** How often it has failed in all. */
  attempts: number
  /** Where it is now, in the fail topic. */
  place: Place
  bizId?: string
  /** How it failed last, and what its consumer said of that; of one that does not say, absent. */
  errorKind?: string
  error?: string
  lastFailedAtMs: number
  resentAtMs?: number
  /** When it was confirmed or dropped. */
  settledAtMs?: number
  dropReason?: string
  /** Somebody is at resending it, until then at most. */
  claimedUntilMs?: number
  /** When it is past retention where it is now. */
  endsAtMs: number
}

/** Whose record it is. */
export type FailedName = Pick<FailedMessage, 'groupName' | 'topicName' | 'first'>

/** What becomes of a record that tells of `next`, where `current` is there: the rule of `recordFailed`. */
export function decideRecord(
  current: FailedMessage | undefined,
  next: FailedMessage,
): 'replace' | 'known' | 'superseded' {
  if (current === undefined) return 'replace'
  const lead = next.resends - current.resends || next.retryCount - current.retryCount
  if (lead > 0) return 'replace'
  if (lead < 0) return 'superseded'
  if (next.state === 'succeeded' && current.state !== 'succeeded') return 'replace'
  const isSame =
    next.state === current.state &&
    next.place.queueId === current.place.queueId &&
    next.place.offset === current.place.offset
  return isSame ? 'known' : 'superseded'
}

/** Whether what is known of the last failure stays: a confirmation and a resend know nothing of it. */
export const keepsError = ({ state, retryCount }: FailedMessage): boolean => state === 'succeeded' || retryCount === 0

/** The record that `next` makes of `current`. */
export function mergeRecord(current: FailedMessage | undefined, next: FailedMessage): FailedMessage {
  if (current === undefined || !keepsError(next)) return next
  const { errorKind, error } = current
  return { ...(errorKind !== undefined && { errorKind }), ...(error !== undefined && { error }), ...next }
}

/** Whether a record is as it was read, and nobody is at resending it: the rule of `replaceFailed`. */
export function isAsRead(current: FailedMessage | undefined, read: FailedMessage, nowMs: number): boolean {
  return (
    current !== undefined &&
    current.state === read.state &&
    current.resends === read.resends &&
    current.retryCount === read.retryCount &&
    (current.claimedUntilMs ?? 0) <= nowMs
  )
}
