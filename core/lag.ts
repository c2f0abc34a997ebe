/** What waits for a group in a topic, or in its fail topic. Of a broadcast group: by each measure what waits for the member that is worst off. */
export type Lag = {
  groupName: string
  /** The topic subscribed to, also of what is in its fail topic. */
  topicName: string
  isFailTopic: boolean
  /** Messages that are not committed. */
  messages: number
  /** For how long the oldest of them has waited; 0: none waits. */
  oldestAgeMs: number
  /** How long the one is kept that is past retention first, and in how many milliseconds it is. Absent: none waits. */
  retentionMs?: number
  retentionLeftMs?: number
  /** Messages that were past retention before they were committed: they still count as uncommitted. */
  lost: number
  /** Queues on which nobody gets on, though the group is running. */
  stalledQueues: number
}
