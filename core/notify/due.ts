import type { Subscription, Topic } from '../model.ts'
import type { QueueOfTopic } from '../notices.ts'
import type { PendingQueue } from './target.ts'

/**
 * When what is appended to a queue now is due for a group, whose hints come no sooner. What a retry waits for depends on how
 * often its message has failed, which the bus does not say: from the first delay to the last one.
 */
export function dueOf(
  { queueId, isDue }: QueueOfTopic,
  { failOf }: Topic,
  subscription: Subscription,
  nowMs: number,
): PendingQueue {
  if (isDue) return { queueId, dueAtMs: nowMs, lastDueAtMs: nowMs }
  if (!failOf) {
    const dueAtMs = roundUp(nowMs, subscription.delayProcessTimeSeconds)
    return { queueId, dueAtMs, lastDueAtMs: dueAtMs }
  }
  const { retryDelaySeconds, retryBackoffRate, maxRetryDelaySeconds, retryCount } = subscription
  const last = Math.min(maxRetryDelaySeconds, retryDelaySeconds * retryBackoffRate ** Math.max(0, retryCount - 1))
  return { queueId, dueAtMs: roundUp(nowMs, retryDelaySeconds), lastDueAtMs: roundUp(nowMs, last) }
}

/** To whole seconds, so that what is appended within one is due at once, and is written down once. */
const roundUp = (nowMs: number, delaySeconds: number) =>
  delaySeconds === 0 ? nowMs : Math.ceil((nowMs + delaySeconds * 1000) / 1000) * 1000
