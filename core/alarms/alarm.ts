import type { TargetRef } from '../notify/target.ts'

/**
 * What an alarm is about. `lag`: more waits in a topic for a group, or for longer, than somebody has allowed. `retention`: unread
 * messages are soon past retention, or some are. `stalled`: messages wait for a group that is running, and nothing of their queues was
 * committed for long. `target_disabled`: nothing is sent any more to a target that failed.
 */
export type AlarmKind = 'lag' | 'retention' | 'stalled' | 'target_disabled'

/** What it is about, by which there is one alarm of a kind at most. */
export type AlarmName = {
  kind: AlarmKind
  /** Absent: it is about a target of alarms. */
  groupName?: string
  topicName?: string
  targetName?: string
}

/** An alarm that is open, or was. */
export type Alarm = AlarmName & {
  /** Figures at the time when it was raised, or cleared: numbers whose names say their units. */
  facts: Record<string, number>
  raisedAtMs: number
  /** Absent: it is open. */
  clearedAtMs?: number
  /** It is cleared since what it was about is not there any more. */
  isGone?: boolean
  /** The bus was told of the last change. Who could not do that has left it to the tick. */
  isTold: boolean
  revision: number
}

/** An alarm that was cleared stays listed for 30 days. */
export const clearedKeptMs = 30 * 86_400_000

/** One text for each name. No name of a group, topic or target has the separator. */
export const alarmId = ({ kind, groupName = '', topicName = '', targetName = '' }: AlarmName): string =>
  [kind, groupName, topicName, targetName].join('#')

/** What an alarm about a target is called. */
export const targetAlarm = ({ owner, name }: TargetRef): AlarmName => ({
  kind: 'target_disabled',
  ...(owner !== 'alarms' && { groupName: owner.groupName }),
  targetName: name,
})

export const isOpen = ({ clearedAtMs }: Alarm): boolean => clearedAtMs === undefined

/** For people: what is the matter, in one sentence. */
export function describeAlarm(alarm: Alarm): string {
  const { kind, groupName, topicName, targetName, facts, clearedAtMs } = alarm
  if (alarm.isGone) return describeGone(alarm)
  const { messages = 0, oldestAgeSeconds = 0, retentionLeftSeconds = 0, lost = 0, failures = 0, queues = 0 } = facts
  const isOver = clearedAtMs !== undefined
  const waits = `${messages} messages wait, the oldest for ${oldestAgeSeconds} s`
  switch (kind) {
    case 'lag':
      return `Group ${groupName} ${isOver ? 'has caught up with' : 'is behind in'} topic ${topicName}: ${waits}`
    case 'retention':
      if (isOver)
        return `Group ${groupName} reads topic ${topicName} again before its messages are past retention: ${waits}`
      return lost > 0
        ? `Group ${groupName} has missed ${lost} messages of topic ${topicName}, which are past retention: ${waits}`
        : `Group ${groupName} will miss messages of topic ${topicName}, which are past retention in ${retentionLeftSeconds} s: ${waits}`
    case 'stalled':
      return isOver
        ? `Group ${groupName} gets on with topic ${topicName} again`
        : `Group ${groupName} does not get on with ${queues} ${queues === 1 ? 'queue' : 'queues'} of topic ${topicName}: ${waits}`
    case 'target_disabled':
      return isOver
        ? `Target ${targetName} ${whoseOf(alarm)} is sent to again`
        : `Target ${targetName} ${whoseOf(alarm)} is sent nothing any more, since it has failed ${failures === 1 ? 'once' : `${failures} times in a row`}`
  }
}

const describeGone = (alarm: Alarm): string =>
  alarm.kind === 'target_disabled'
    ? `Target ${alarm.targetName} ${whoseOf(alarm)} was removed`
    : `Nobody reads topic ${alarm.topicName} for group ${alarm.groupName} any more`

const whoseOf = ({ groupName }: Alarm) => (groupName === undefined ? 'of alarms' : `of group ${groupName}`)

/** An alarm as others are told of it. */
export type ToldAlarm = Omit<Alarm, 'isTold' | 'revision'>

export function toTold({ isTold: _told, revision: _revision, ...alarm }: Alarm): ToldAlarm {
  return alarm
}
