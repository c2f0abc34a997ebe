import type { FailedMessage, FailedName, FirstPlace } from './records.ts'

/**
 * The part of the store port for failed messages. They are kept until `endsAtMs`, or longer: readers hide what has ended.
 * Each subscription's are in one place of their own, so a subscription whose messages all fail is bounded by what one
 * partition takes, some 1,000 a second on DynamoDB; nobody else waits for them.
 */
export interface FailedStore {
  /**
   * Records what has become of a message, unless the record tells of something later (`decideRecord`). `recorded`: also if
   * it was known already.
   */
  recordFailed(next: FailedMessage): Promise<'recorded' | 'superseded'>

  /** Replaces a record if it is as `read`, and nobody is at resending it (`isAsRead`). */
  replaceFailed(read: FailedMessage, next: FailedMessage, nowMs: number): Promise<'replaced' | 'refused'>

  /** Those of these records that there are, in no order. Their names must differ. */
  readFailed(names: readonly FailedName[]): Promise<FailedMessage[]>

  /** Records of a subscription in the order of their first places, or against it; both ends belong to the range. */
  listFailed(query: FailedQuery): Promise<FailedMessage[]>
}

export type FailedQuery = {
  groupName: string
  topicName: string
  from: FirstPlace
  to: FirstPlace
  direction: 'forward' | 'backward'
  limit: number
}
