import type { QueueOffset } from '../model.ts'
import type { ClaimRenewal, QueueClaim } from '../store.ts'
import { oneMoreDeath } from './deaths.ts'

/**
 * A claim is a lease: who has it works alone on the queue until it ends, and longer if nobody else asks. Each claim raises
 * `offsetVersion`, so that a claimant whose lease was over for too long is fenced as a former owner is.
 */

/** The record after a claim; undefined: a conflict. Somebody holds the queue, or it is not as the claimant has read it. */
export function afterClaim(current: QueueOffset | undefined, asked: QueueClaim): QueueOffset | undefined {
  if (current === undefined || current.offsetVersion !== asked.expectedOffsetVersion) return undefined
  if (!isClaimable(current, asked.nowMs, asked.retakes ? asked.claimant : undefined)) return undefined
  const { claimant, untilMs, ownerIsLost } = asked
  const deaths = ownerIsLost && oneMoreDeath(current)
  return { ...current, ...deaths, offsetVersion: current.offsetVersion + 1, claim: { claimant, untilMs } }
}

/** Whether a queue can be claimed: nobody holds it, or only `retaker` who does not know, and it was not stopped. */
export function isClaimable(
  { claim, consumerId, isStopped }: QueueOffset,
  nowMs: number,
  retaker: string | undefined,
): boolean {
  const isFree = claim === undefined || claim.untilMs <= nowMs || claim.claimant === retaker
  return consumerId === 0 && !isStopped && isFree
}

/** Whether who has a claimable queue has let the lease end. A released one has no claim; one's own was told to nobody. */
export const isLeftByDead = ({ claim }: QueueOffset, retaker: string | undefined): boolean =>
  claim !== undefined && claim.claimant !== retaker

/** The record after a renewal; undefined: fenced. */
export function afterRenewal(current: QueueOffset | undefined, asked: ClaimRenewal): QueueOffset | undefined {
  const { claim, offsetVersion } = current ?? {}
  if (current === undefined || claim === undefined || offsetVersion !== asked.offsetVersion) return undefined
  return { ...current, claim: { ...claim, untilMs: asked.untilMs } }
}
