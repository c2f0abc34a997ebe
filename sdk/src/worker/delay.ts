import type { AssignedQueue } from '../../../core/protocol/membership.ts'

/** The settings that say how late a message is handed out; on the wire in seconds. */
export type DelaySettings = Pick<AssignedQueue, 'topicType' | 'delayProcessTime' | 'retryBackoffRate' | 'maxRetryDelay'>

/** How long after its append a message is handed out, in milliseconds. In a fail queue each failure may make it longer. */
export function delayMsOf(settings: DelaySettings, retryCount: number): number {
  const { topicType, delayProcessTime, retryBackoffRate, maxRetryDelay } = settings
  if (topicType === 1 || delayProcessTime === 0) return delayProcessTime * 1000
  // A dead letter that somebody has resent waits no more.
  if (retryCount === 0) return 0
  const growth = (retryBackoffRate ?? 1) ** Math.max(0, retryCount - 1)
  return Math.min(maxRetryDelay ?? longestDelaySeconds, delayProcessTime * growth) * 1000
}

/** Half a day: what the service accepts. */
const longestDelaySeconds = 43_200
