import type { QueueOffset } from '../model.ts'
import type { Commit, CommitOutcome } from '../store.ts'

/**
 * A commit may only move a queue forward, and only for the consumer that owns it now: each change of owner raises
 * `offsetVersion`, so that what a former owner sends is `fenced`. A release raises it too, for the same consumer: a PMQ
 * client restarts from the offset that it was told before its own final commit, and only a new version corrects it.
 */
export function decideCommit(current: QueueOffset | undefined, asked: Commit): CommitOutcome {
  if (current === undefined) return { outcome: 'unknown_queue' }
  const { offset, offsetVersion } = current
  if (asked.offsetVersion !== offsetVersion) return { outcome: 'fenced', offset, offsetVersion }
  const nextVersion = asked.release ? offsetVersion + 1 : offsetVersion
  if (asked.offset <= offset) return { outcome: 'unchanged', offset, offsetVersion: nextVersion }
  return { outcome: 'advanced', offset: asked.offset, offsetVersion: nextVersion }
}
