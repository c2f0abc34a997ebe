import { type Facts, groupOf } from './facts.ts'
import type { FailedMessage } from './history.ts'

/** What of all rules that a group may have gone by holds whichever it was. */
export type RetryBounds = {
  leastRetries: number
  mostRetries: number
  mayRetryInPlace: boolean
  mayLackFailTopic: boolean
  /** So many messages may be in hand at once, of a queue of the topic, and of one of its fail topic. */
  atOnce: number
  atOnceRetried: number
}

/** Undefined: nothing is known of how the group works through the topic of this value, or its fail topic. */
export function boundsOf(facts: Facts, group: string, value: string): RetryBounds | undefined {
  const [publish] = facts.sent.get(value)?.publishes.values() ?? []
  const rules = publish && facts.retryRules.get(`${groupOf(group)}/${publish.invoke.topic}`)
  if (!rules) return undefined
  return {
    leastRetries: Math.min(...rules.map(({ retryCount }) => retryCount)),
    mostRetries: Math.max(...rules.map(({ retryCount }) => retryCount)),
    mayRetryInPlace: rules.some(({ retryInPlace }) => retryInPlace),
    mayLackFailTopic: rules.some(({ hasFailTopic }) => !hasFailTopic),
    atOnce: Math.max(...rules.map(({ atOnce }) => atOnce)),
    atOnceRetried: Math.max(...rules.map(({ atOnceRetried }) => atOnceRetried)),
  }
}

/** What this value is a copy of; undefined: it is no copy for a fail topic. */
export function failureOf(facts: Facts, value: string): FailedMessage | undefined {
  const [publish] = facts.sent.get(value)?.publishes.values() ?? []
  return publish?.failureOf
}

/** Whether a message has failed so often that its group need not handle it any more. */
export function mayBeDead(facts: Facts, group: string, value: string): boolean {
  const retryCount = failureOf(facts, value)?.retryCount
  const bounds = retryCount === undefined ? undefined : boundsOf(facts, group, value)
  return bounds !== undefined && retryCount !== undefined && retryCount > bounds.leastRetries
}
