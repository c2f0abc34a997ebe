import type { Core } from '../core.ts'
import type { Lag } from '../lag.ts'
import { type SeenGroup, warnedBelow } from './judge-lag.ts'

/** How many messages will come, nobody knows. Where their number has a limit, somebody waits to hear of it. */
const countedEveryMs = 5 * 60_000

/**
 * In how many milliseconds something may have to be said of a group that was seen so: whoever looks by then says it in time. By
 * what topics said an hour ago: nothing is read for it. Infinity: there is no limit to anything.
 */
export async function soonestAlarmMs(
  core: Pick<Core, 'oldTopics'>,
  { lags, subscriptions }: SeenGroup,
): Promise<number> {
  const each = await Promise.all(
    lags.map(async lag => {
      const subscription = subscriptions.find(({ topicName }) => topicName === lag.topicName)
      if (!subscription) return []
      const topic = (await core.oldTopics.get(lag.topicName))?.topic
      const ofRetention = untilWarned(lag, topic?.retentionMs)
      if (lag.isFailTopic) return [ofRetention]
      const maxAgeMs = 1000 * (subscription.maxLagSeconds || topic?.maxLagSeconds || Number.POSITIVE_INFINITY)
      const isCounted = subscription.maxLag || topic?.maxLag
      return [ofRetention, maxAgeMs - lag.oldestAgeMs, ...(isCounted ? [countedEveryMs] : [])]
    }),
  )
  // What is past its limit by now has its alarm.
  return Math.min(...each.flat().filter(ms => ms >= 0))
}

/** Where nothing waits, a message may come at once. */
function untilWarned({ retentionMs, retentionLeftMs }: Lag, ofTopicMs = Number.POSITIVE_INFINITY): number {
  if (retentionMs === undefined || retentionLeftMs === undefined) return ofTopicMs * (1 - warnedBelow)
  return retentionLeftMs - retentionMs * warnedBelow
}
