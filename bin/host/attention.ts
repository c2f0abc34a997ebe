import type { DeadLetters } from '../../core/core.ts'
import type { Notice } from '../../core/notices.ts'
import type { TickReport } from '../../core/tick/report.ts'

/**
 * Says what an operator should look at, when it begins and not at every tick: on AWS a metric and its alarm do. What was
 * over for one tick is said again.
 */
export function createAttention(say: (text: string) => void): (report: Pick<TickReport, 'unhandled'>) => void {
  let said = new Set<string>()
  return ({ unhandled }) => {
    const now = unhandled.flatMap(({ groupName, topicNames }) =>
      topicNames.map(topicName => `no running consumer of group ${groupName} handles topic ${topicName}`),
    )
    for (const text of now) if (!said.has(text)) say(`${text}: its messages wait`)
    said = new Set(now)
  }
}

/** Says that an alarm was raised, and that it is over: each once, as it is told once. */
export const createAlarmVoice =
  (say: (text: string) => void) =>
  (notice: Notice): void => {
    if (notice.type === 'AlarmRaised') say(notice.text)
    if (notice.type === 'AlarmCleared') say(`over: ${notice.text}`)
  }

/** Says at each tick how many messages have become dead letters since the one before: a thousand at once are one line. */
export function createObituary(say: (text: string) => void) {
  const counts = new Map<string, number>()
  return {
    note({ groupName, topicName, count }: DeadLetters): void {
      const what = `of topic ${topicName} that group ${groupName} has failed to handle`
      counts.set(what, (counts.get(what) ?? 0) + count)
    },
    tell(): void {
      for (const [what, count] of counts) say(`${count} new dead letter${count === 1 ? '' : 's'} ${what}`)
      counts.clear()
    },
  }
}
