import type { Core } from '../core.ts'
import { findAppendTime } from '../log/seek.ts'
import type { GroupSnapshot, QueueOffset, Subscription } from '../model.ts'
import { originOf } from './fail-topics.ts'

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
 * could have been handled, and nothing was committed, for longer than `patienceMs`.
 */
export async function findBacklog(
  core: Core,
  queue: QueueOffset,
  subscriptions: readonly Subscription[],
  end: number,
  patienceMs: number,
): Promise<Backlog> {
  const { queueId, offset, isStopped, committedAtMs = 0 } = queue
  const lag = Math.max(0, end - 1 - offset)
  const waitingSinceMs = lag > 0 ? await findAppendTime(core.store, queueId, offset + 1) : undefined
  if (waitingSinceMs === undefined) return { lag, isStalled: false }
  const dueAtMs = waitingSinceMs + longestDelayMs(queue, subscriptions)
  const isOverdue = (sinceMs: number) => core.clock.now() - sinceMs > patienceMs
  return { lag, waitingSinceMs, isStalled: !isStopped && isOverdue(dueAtMs) && isOverdue(committedAtMs) }
}

function longestDelayMs(queue: QueueOffset, subscriptions: readonly Subscription[]): number {
  const subscription = subscriptions.find(({ topicName }) => topicName === originOf(queue))
  if (subscription === undefined) return 0
  const { delayProcessTimeSeconds, maxRetryDelaySeconds } = subscription
  return 1000 * (queue.originTopicName === undefined ? delayProcessTimeSeconds : maxRetryDelaySeconds)
}

/** The queues of a group that stall; a read or two of the log for each of its queues. */
export async function findStalled(
  core: Core,
  { offsets, subscriptions }: GroupSnapshot,
  patienceMs: number,
): Promise<QueueOffset[]> {
  const look = async (queue: QueueOffset) => {
    const end = await core.findEnd(queue.topicName, queue.queueId)
    return findBacklog(core, queue, subscriptions, end, patienceMs)
  }
  const backlogs = await Promise.all(offsets.map(look))
  return offsets.filter((_, i) => backlogs[i]?.isStalled)
}
