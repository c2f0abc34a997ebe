import type { StoredMessage } from '../log/read-at.ts'
import type { Topic } from '../model.ts'
import { limits } from '../protocol/limits.ts'
import type { FailureTrail } from '../protocol/pull.ts'
import type { FailedMessage, FirstPlace, Place } from './records.ts'

/**
 * What a message of a fail topic carries of its past, from copy to copy: by that, the record of a message follows from
 * any of its copies alone, and the client need not know of it.
 */
type FailOf = NonNullable<Topic['failOf']>

/** The trail of a message that has failed: in its topic, or (`former`) in the fail topic. */
export function trailOf(failOf: FailOf, from: Place | undefined, former: StoredMessage | undefined): FailureTrail {
  const last = from && { from: pairOf(from) }
  if (!former) return { of: [failOf.groupName, failOf.topicName], ...last }
  const { failed } = former.message
  return { ...keptOf(failOf, firstOf(former), failed && originOf(failed)), ...last, ...resentOf(failed) }
}

/** The trail of a dead letter that is resent. */
export function trailOfResent(record: FailedMessage, nowMs: number): FailureTrail {
  const { first, origin, place, resends, attempts, lastFailedAtMs } = record
  return {
    ...keptOf(record, first, origin),
    from: pairOf(place),
    resent: [resends + 1, nowMs, attempts, lastFailedAtMs],
  }
}

/** The record of a message as it lies in a fail topic. Undefined: it is of a time without records. */
export function recordOf(stored: StoredMessage, state: FailedMessage['state']): FailedMessage | undefined {
  const { message, queueId, offset, appendedAtMs, expiresAtMs } = stored
  const { failed, retryCount = 0, bizId } = message
  if (failed === undefined) return undefined
  const [groupName, topicName] = failed.of
  const origin = originOf(failed)
  const [resends = 0, resentAtMs, attemptsBefore, failedBeforeMs] = failed.resent ?? []
  return {
    groupName,
    topicName,
    first: firstOf(stored),
    ...(origin && { origin }),
    state,
    resends,
    retryCount,
    attempts: attemptsBefore === undefined ? Math.max(1, retryCount) : attemptsBefore + retryCount,
    place: { queueId, offset },
    ...(bizId && { bizId: bizId.slice(0, limits.maxBizIdLength).toWellFormed() }),
    lastFailedAtMs: (retryCount === 0 ? failedBeforeMs : undefined) ?? appendedAtMs,
    ...(resentAtMs !== undefined && { resentAtMs }),
    endsAtMs: expiresAtMs,
  }
}

/** Where a message of a fail topic failed first, in its topic. */
export function originOf({ first, origin, from }: FailureTrail): Place | undefined {
  const pair = origin ?? (first ? undefined : from)
  return pair && placeOf(pair)
}

export const placeOf = ([queueId, offset]: [number, number]): Place => ({ queueId, offset })

const pairOf = ({ queueId, offset }: Place): [number, number] => [queueId, offset]

function firstOf({ message, queueId, offset, appendedAtMs }: StoredMessage): FirstPlace {
  const { first } = message.failed ?? {}
  if (!first) return { atMs: appendedAtMs, queueId, offset }
  return { atMs: first[0], queueId: first[1], offset: first[2] }
}

const keptOf = ({ groupName, topicName }: FailOf, first: FirstPlace, origin: Place | undefined): FailureTrail => ({
  of: [groupName, topicName],
  first: [first.atMs, first.queueId, first.offset],
  ...(origin && { origin: pairOf(origin) }),
})

const resentOf = (failed: FailureTrail | undefined) => failed?.resent && { resent: failed.resent }
