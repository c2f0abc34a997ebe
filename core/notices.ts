import type { ToldAlarm } from './alarms/alarm.ts'
import type { TargetRef } from './notify/target.ts'

/**
 * What is said on the bus to whoever acts on it without being called. Names only: never what messages hold, no secrets.
 * Any of it may be told twice, or be lost, which costs time only: the tick looks for what was missed.
 *
 * | | is said when |
 * |---|---|
 * | `QueueAppended` | a queue has got messages, and one of its groups has targets. At once, but not always |
 * | `QueueBusy` | it was, and `QueueAppended` was left unsaid since it had been said a moment before. Heard a second later |
 * | `TargetTest` | an operator wants to see whether a target answers |
 * | `AlarmRaised`, `AlarmCleared` | somebody should act; or has, or need not any more |
 */
export type Notice =
  | ({ type: 'QueueAppended' | 'QueueBusy' } & QueueOfTopic)
  | { type: 'TargetTest'; target: TargetRef; deliveryId: string }
  | { type: 'AlarmRaised' | 'AlarmCleared'; alarm: ToldAlarm; text: string }

export type QueueOfTopic = {
  topicName: string
  queueId: number
  /** It has messages that are due now, whatever its group's settings delay. */
  isDue?: boolean
}
