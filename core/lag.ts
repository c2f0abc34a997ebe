/** What waits for a group in a topic, or in its fail topic, at a time. */
export type Lag = {
  groupName: string
  /** The topic subscribed to, also of what is in its fail topic. */
  topicName: string
  isFailTopic: boolean
  /** Messages that are not committed. */
  messages: number
  /** For how long the oldest of them has waited; 0: none waits. */
  oldestAgeMs: number
  /** How long a message is kept in the topic. */
  retentionMs: number
  /** When the first unread message falls to retention, in milliseconds from now. Absent: none waits. */
  retentionLeftMs?: number
  /** Messages that have fallen to retention before they were committed: they are still counted as uncommitted. */
  lost: number
  /** The queues with messages. */
  behind: { queueId: number; messages: number; committedAtMs?: number }[]
}
