import type { QueueOffset } from '../model.ts'
import type { Commit, CommitOutcome } from '../store.ts'
import { careAfter } from './deaths.ts'

/**
 * A commit may only move a queue forward, and only for the consumer that owns it now: each change of owner raises
 * `offsetVersion`, so that what a former owner sends is `fenced`. A release raises it too: a queue that is leaving goes
 * to its next owner, one that is claimed is free; one that stays does so for PMQ's clients, which restart from the offset that they were told before
 * their own final commit, and only a new version corrects it.
 */
export function decideCommit(current: QueueOffset | undefined, asked: Commit): CommitOutcome {
  if (current === undefined) return { outcome: 'unknown_queue' }
  const { offset, offsetVersion } = current
  if (asked.offsetVersion !== offsetVersion) return { outcome: 'fenced', offset, offsetVersion }
  const isAhead = asked.offset > offset
  return {
    outcome: isAhead ? 'advanced' : 'unchanged',
    offset: isAhead ? asked.offset : offset,
    offsetVersion: asked.release ? offsetVersion + 1 : offsetVersion,
    handedOver: asked.release && current.nextConsumerId !== undefined,
  }
}

/** The record after a commit that was not refused. */
export function afterCommit(
  current: QueueOffset,
  asked: Commit,
  decided: Extract<CommitOutcome, { handedOver: boolean }>,
): QueueOffset {
  const { nextConsumerId, leavingSinceMs, claim, deaths: _deaths, trial: _trial, ...rest } = current
  const { offset, offsetVersion } = decided
  const after = {
    ...rest,
    ...careAfter(current, asked, decided.outcome === 'advanced'),
    offset,
    offsetVersion,
    ...(decided.outcome === 'advanced' && { committedAtMs: asked.nowMs }),
  }
  if (decided.handedOver && nextConsumerId !== undefined) return { ...after, consumerId: nextConsumerId }
  return {
    ...after,
    ...(nextConsumerId !== undefined && { nextConsumerId }),
    ...(leavingSinceMs !== undefined && { leavingSinceMs }),
    ...(claim !== undefined && !asked.release && { claim }),
  }
}

/** The record after its offset was set by hand. */
export function afterReset(current: QueueOffset, offset: number): QueueOffset {
  const { claim: _ended, deaths: _deaths, trial: _trial, ...rest } = current
  return { ...rest, offset, offsetVersion: current.offsetVersion + 1 }
}
