import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { Message } from '../message.ts'

/** The settings that say what becomes of a message that failed. */
export type FailureSettings = Pick<AssignedQueue, 'failTopicName' | 'retryInPlace' | 'retryCount'>

/**
 * The `retryCount` with which a message that has failed `failures` times here goes to the fail topic. Undefined: it is
 * handed out again in place, for ever where there is no fail topic. In a subscription that retries in place it goes when it
 * has failed as often as it may, and counts as a dead letter at once; `retryCount` on the wire is one more than that.
 */
export function nextRetryCount(settings: FailureSettings, message: Message, failures: number): number | undefined {
  const { failTopicName, retryInPlace, retryCount } = settings
  if (!failTopicName) return undefined
  if (!retryInPlace) return message.retryCount + 1
  return message.retryCount + failures >= retryCount ? retryCount : undefined
}
