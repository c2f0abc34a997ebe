import type { TickReport } from '../../core/tick.ts'

/**
 * Says what an operator should look at, when it begins and not at every tick: on AWS a metric and its alarm do. What was
 * over for one tick is said again.
 */
export function createAttention(say: (text: string) => void): (report: TickReport) => void {
  let said = new Set<string>()
  return ({ unhandled, stalled }) => {
    const now = [
      ...unhandled.flatMap(({ groupName, topicNames }) =>
        topicNames.map(topicName => `no running consumer of group ${groupName} handles topic ${topicName}`),
      ),
      ...stalled.map(
        ({ groupName, topicName, queueId }) =>
          `group ${groupName} does not get on with queue ${queueId} of ${topicName}`,
      ),
    ]
    for (const text of now) if (!said.has(text)) say(`${text}: its messages wait`)
    said = new Set(now)
  }
}
