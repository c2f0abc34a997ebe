import type { Core } from '../core.ts'
import { findAppendTime } from '../log/seek.ts'
import type { QueueOffset } from '../model.ts'

/** What waits in a queue for a group. */
export type Backlog = {
  /** How many messages. */
  lag: number
  /** Since when the oldest of them waits. Absent: none does, or it is past retention. */
  waitingSinceMs?: number
  /** Nobody gets on with it, though it is not stopped: its owner may be hung, or is there for other topics. */
  isStalled: boolean
}

/**
 * Looks what waits in a queue that ends before `end`: a read of the log where anything does. It stalls when its messages
 * have waited, and nothing was committed, for longer than `patienceMs`.
 */
export async function findBacklog(core: Core, queue: QueueOffset, end: number, patienceMs: number): Promise<Backlog> {
  const { queueId, offset, isStopped, committedAtMs = 0 } = queue
  const lag = Math.max(0, end - 1 - offset)
  const waitingSinceMs = lag > 0 ? await findAppendTime(core.store, queueId, offset + 1) : undefined
  if (waitingSinceMs === undefined) return { lag, isStalled: false }
  const isOverdue = (sinceMs: number) => core.clock.now() - sinceMs > patienceMs
  return { lag, waitingSinceMs, isStalled: !isStopped && isOverdue(waitingSinceMs) && isOverdue(committedAtMs) }
}

/** The queues of a group that stall; a read or two of the log for each of its queues. */
export async function findStalled(
  core: Core,
  queues: readonly QueueOffset[],
  patienceMs: number,
): Promise<QueueOffset[]> {
  const look = async (queue: QueueOffset) =>
    findBacklog(core, queue, await core.findEnd(queue.topicName, queue.queueId), patienceMs)
  const backlogs = await Promise.all(queues.map(look))
  return queues.filter((_, i) => backlogs[i]?.isStalled)
}
