import type { Unread } from '../log/seek.ts'
import type { QueueOffset, Subscription } from '../model.ts'
import type { Clock } from '../protocol/clock.ts'
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

/** What of it matters to who measures. */
export type MeasuredBacklog = Backlog & {
  /** When the oldest that is there is past retention. */
  endsAtMs?: number
  /** Messages that were past retention before they were committed. */
  lost: number
}

export type BacklogDeps = {
  clock: Clock
  /** The first message of a queue from an offset on, and before its end, that is within retention. */
  findUnread(queueId: number, offset: number, end: number): Promise<Unread | undefined>
}

/**
 * Looks what waits in a queue that ends before `end`: a read of the log where anything does. It stalls when its messages
 * could have been handled, and nothing was committed, for longer than `patienceMs`.
 */
export async function findBacklog(
  { clock, findUnread }: BacklogDeps,
  queue: QueueOffset,
  subscriptions: readonly Subscription[],
  end: number,
  patienceMs: number,
): Promise<MeasuredBacklog> {
  const { queueId, offset, isStopped, committedAtMs = 0 } = queue
  const lag = Math.max(0, end - 1 - offset)
  if (lag === 0) return { lag, lost: 0, isStalled: false }
  const nowMs = clock.now()
  const unread = await findUnread(queueId, offset + 1, end)
  // What was trimmed may have been the last that there was.
  if (unread === undefined) return { lag, lost: lag, isStalled: false }
  const dueAtMs = unread.appendedAtMs + longestDelayMs(queue, subscriptions)
  const isOverdue = (sinceMs: number) => nowMs - sinceMs > patienceMs
  return {
    lag,
    waitingSinceMs: unread.appendedAtMs,
    endsAtMs: unread.expiresAtMs,
    lost: unread.offset - offset - 1,
    isStalled: !isStopped && isOverdue(dueAtMs) && isOverdue(committedAtMs),
  }
}

function longestDelayMs(queue: QueueOffset, subscriptions: readonly Subscription[]): number {
  const subscription = subscriptions.find(({ topicName }) => topicName === originOf(queue))
  if (subscription === undefined) return 0
  const { delayProcessTimeSeconds, maxRetryDelaySeconds } = subscription
  return 1000 * (queue.originTopicName === undefined ? delayProcessTimeSeconds : maxRetryDelaySeconds)
}
