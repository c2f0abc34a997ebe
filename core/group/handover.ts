import type { QueueOffset } from '../model.ts'
import type { QueueMove } from '../store.ts'
import { oneMoreDeath } from './deaths.ts'

/** What becomes of a queue's ownership: the owner from now on, and whether it is leaving. */
export type Ownership = {
  consumerId: number
  leaving?: { nextConsumerId: number; sinceMs: number }
  /** It is taken from one that was lost. */
  ownerIsLost?: boolean
}

export type Handover = {
  /** Who should own the queue; 0: nobody. */
  wanted: number
  /** `gone`: it has left in order, or was replaced by one that it has made room for. */
  owner: 'alive' | 'gone' | 'lost'
  nowMs: number
  /** How long an owner may take to finish with a queue that was taken away from it, in milliseconds. */
  timeoutMs: number
}

/**
 * The next step of a queue towards the owner that a plan wants for it; undefined: none. An owner that lives is asked to
 * leave and may finish, so that a clean change delivers nothing twice (P6); one that is gone, or too late, is fenced.
 */
export function decideHandover(
  offset: QueueOffset,
  { wanted, owner: state, nowMs, timeoutMs }: Handover,
): Ownership | undefined {
  const { consumerId: owner, nextConsumerId: next, leavingSinceMs: sinceMs = nowMs } = offset
  if (owner === 0) return wanted === 0 ? undefined : { consumerId: wanted }
  const isLate = next !== undefined && nowMs - sinceMs >= timeoutMs
  if (state === 'lost') return { consumerId: wanted, ownerIsLost: true }
  if (state === 'gone' || (isLate && wanted !== owner)) return { consumerId: wanted }
  if (wanted === owner) return next === undefined ? undefined : { consumerId: owner }
  if (wanted === next) return undefined
  return { consumerId: owner, leaving: { nextConsumerId: wanted, sinceMs } }
}

/** Where a queue is heading: to its next owner, if it is leaving. */
export const headingFor = (offset: QueueOffset) => offset.nextConsumerId ?? offset.consumerId

/** The next move of a queue as it was read, of which its group's next `rbVersion` will tell. */
export const moveOf = (group: { rbVersion: number }, offset: QueueOffset, ownership: Ownership): QueueMove => ({
  groupName: offset.groupName,
  queueOffsetId: offset.queueOffsetId,
  expectedOffsetVersion: offset.offsetVersion,
  expectedConsumerId: offset.consumerId,
  expectedNextConsumerId: offset.nextConsumerId,
  ...ownership,
  rbVersion: group.rbVersion + 1,
})

/** The record after a move; undefined: a conflict, since the queue is not as the mover has read it. */
export function afterMove(offset: QueueOffset, group: { rbVersion: number }, move: QueueMove): QueueOffset | undefined {
  const { nextConsumerId, leavingSinceMs: _since, ...rest } = offset
  const isAsRead =
    offset.offsetVersion === move.expectedOffsetVersion &&
    offset.consumerId === move.expectedConsumerId &&
    nextConsumerId === move.expectedNextConsumerId &&
    group.rbVersion + 1 === move.rbVersion
  if (!isAsRead) return undefined
  const { consumerId, leaving, ownerIsLost, rbVersion } = move
  const offsetVersion = offset.offsetVersion + (isFencing(move) ? 1 : 0)
  const moved = { ...rest, ...(ownerIsLost && oneMoreDeath(offset)), consumerId, offsetVersion, rbVersion }
  return leaving ? { ...moved, nextConsumerId: leaving.nextConsumerId, leavingSinceMs: leaving.sinceMs } : moved
}

/** A queue that gets another owner is fenced against the former one. */
export const isFencing = (move: QueueMove) => move.consumerId !== move.expectedConsumerId
