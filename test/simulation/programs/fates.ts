import { hashKey } from '../../../core/log/placement.ts'
import type { SubscriptionSettings } from '../../../core/model.ts'

/** How a group fails. Which of its messages do is their value's to say, so that whoever judges knows as well. */
export type FailurePlan = {
  /** Those of its subscriptions that have to do with failures. */
  settings: Partial<SubscriptionSettings>
  /** Whether how often and how late it retries is changed while it works. */
  isChanged: boolean
  /** Share of the messages that always fail, and of those that fail every other time. */
  poison: number
  flaky: number
  /** Share of those that end the process of whoever handles them: until the application is mended, or for good. */
  killers: number
  areMended: boolean
  /** Whether handlers take longer than they may; only where there is such a limit. */
  hangs: boolean
}

/** Where much is handled again and again, by one thread, each time has to be shorter. */
export const failingHaste = 6

const tags = ['red', 'green', 'blue'] as const

/** The word by which a group may select a message. */
export const tagOf = (value: string): string => tags[hashKey(value) % tags.length] ?? tags[0]

export function isPoison(plan: FailurePlan | undefined, groupName: string, value: string): boolean {
  return plan !== undefined && shareOf(groupName, value) < plan.poison
}

export function isFlaky(plan: FailurePlan | undefined, groupName: string, value: string): boolean {
  return plan !== undefined && !isPoison(plan, groupName, value) && shareOf(groupName, value) < plan.poison + plan.flaky
}

export function isKiller(plan: FailurePlan | undefined, groupName: string, value: string): boolean {
  return plan !== undefined && shareOf(groupName, value) >= 1 - plan.killers
}

/** Whether the group passes a message over. */
export function isFiltered(plan: FailurePlan | undefined, value: string): boolean {
  const tag = plan?.settings.tag
  return Boolean(tag) && !tag?.split(',').includes(tagOf(value))
}

/** From 0 up to 1: where a message is among all, for a group. */
const shareOf = (groupName: string, value: string) => hashKey(`${groupName} ${value}`) / 2 ** 32
