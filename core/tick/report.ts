import type { Lag } from '../lag.ts'

/** What a tick looked at, what somebody should look at, and what it could not do. */
export type TickReport = {
  /** Groups that it looked after: they have members, or owe a rebalance. */
  groups: number
  topics: number
  /** Groups whose lag it looked at, and what that is. */
  looked: number
  lags: Lag[]
  /** Queues of which it has told again that they have messages. */
  retold: number
  /** Groups with members, of whom none handles these topics. */
  unhandled: { groupName: string; topicNames: string[] }[]
  /** Queues with messages that wait for long, and on which nobody gets on. */
  stalled: { groupName: string; topicName: string; queueId: number }[]
  /** Its time was over: so many of the groups and topics that were due are left to the next ones. */
  left: number
  failed: { what: string; cause: unknown }[]
}

export const emptyReport = (): TickReport => ({
  groups: 0,
  topics: 0,
  looked: 0,
  lags: [],
  retold: 0,
  unhandled: [],
  stalled: [],
  left: 0,
  failed: [],
})
