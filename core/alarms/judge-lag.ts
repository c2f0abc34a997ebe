import type { Core } from '../core.ts'
import { failTopicName } from '../group/fail-topics.ts'
import type { Lag } from '../lag.ts'
import type { Subscription } from '../model.ts'
import { type Alarm, type AlarmName, alarmId, isOpen } from './alarm.ts'
import { clearAlarm, dropAlarm, raiseAlarm } from './alarms.ts'

/** A limit is crossed above it, and there is room again below so much of it. In between nothing changes. */
const recovery = 0.8
/** Of a message's retention: somebody has to act while so much is left, and has acted when it is so much. */
export const warnedBelow = 0.2
const safeAbove = 0.25

export type SeenGroup = { groupName: string; subscriptions: readonly Subscription[]; lags: readonly Lag[] }

/**
 * Raises and clears what is to be said of a group's lag: one alarm for each topic and kind, however many queues it has. What is
 * about a topic of which nothing can wait for it any more is cleared: the subscription has ended, or the last consumer of a
 * broadcast group has left.
 */
export async function judgeLag(core: Core, seen: SeenGroup, alarms: ReadonlyMap<string, Alarm>): Promise<void> {
  const { groupName, subscriptions } = seen
  const subscriptionOf = ({ topicName }: Lag) => subscriptions.find(each => each.topicName === topicName)
  const waitedFor = new Set(seen.lags.filter(lag => subscriptionOf(lag)).map(topicOf))
  for (const alarm of alarms.values()) {
    const isGone = !waitedFor.has(alarm.topicName ?? '')
    if (isOfLag(alarm) && alarm.groupName === groupName && isGone) await dropAlarm(core, alarm)
  }
  for (const lag of seen.lags) {
    const { topicName, isFailTopic } = lag
    const subscription = subscriptionOf(lag)
    if (!subscription) continue
    // What is in a fail topic waits for its time; only that it falls to retention is bad.
    if (!isFailTopic)
      await judge(core, alarms, { kind: 'lag', groupName, topicName }, lag, await lagVerdict(core, lag, subscription))
    const name = { kind: 'retention', groupName, topicName: topicOf(lag) } as const
    await judge(core, alarms, name, lag, retentionVerdict(lag))
    await judge(core, alarms, { ...name, kind: 'stalled' }, lag, lag.stalledQueues > 0 ? 'bad' : 'good')
  }
}

/** Where the messages are. */
const topicOf = ({ groupName, topicName, isFailTopic }: Lag) =>
  isFailTopic ? failTopicName(groupName, topicName) : topicName

export const isOfLag = ({ kind }: AlarmName) => kind === 'lag' || kind === 'retention' || kind === 'stalled'

type Verdict = 'bad' | 'good' | 'between'

async function judge(core: Core, alarms: ReadonlyMap<string, Alarm>, name: AlarmName, lag: Lag, verdict: Verdict) {
  const known = alarms.get(alarmId(name))
  if (verdict === 'bad') await raiseAlarm(core, name, factsOf(lag), known)
  if (verdict === 'good' && known && isOpen(known)) await clearAlarm(core, known, factsOf(lag))
}

/** By what the subscription says, and where it says nothing, the topic. */
async function lagVerdict(core: Core, lag: Lag, subscription: Subscription): Promise<Verdict> {
  // What has no lag is within any limit, and the topic need not be read.
  if (lag.messages === 0) return 'good'
  const topic = (await core.topics.get(subscription.topicName))?.topic
  const maxLag = subscription.maxLag || topic?.maxLag || Number.POSITIVE_INFINITY
  const maxAgeMs = 1000 * (subscription.maxLagSeconds || topic?.maxLagSeconds || Number.POSITIVE_INFINITY)
  if (lag.messages > maxLag || lag.oldestAgeMs > maxAgeMs) return 'bad'
  return lag.messages < maxLag * recovery && lag.oldestAgeMs < maxAgeMs * recovery ? 'good' : 'between'
}

function retentionVerdict({
  messages,
  lost,
  retentionMs = 0,
  retentionLeftMs = Number.POSITIVE_INFINITY,
}: Lag): Verdict {
  if (messages === 0) return 'good'
  if (lost > 0 || retentionLeftMs < retentionMs * warnedBelow) return 'bad'
  return retentionLeftMs > retentionMs * safeAbove ? 'good' : 'between'
}

const factsOf = ({ messages, oldestAgeMs, retentionLeftMs, lost, stalledQueues }: Lag): Alarm['facts'] => ({
  messages,
  oldestAgeSeconds: Math.round(oldestAgeMs / 1000),
  ...(retentionLeftMs !== undefined && { retentionLeftSeconds: Math.round(retentionLeftMs / 1000) }),
  ...(lost > 0 && { lost }),
  ...(stalledQueues > 0 && { queues: stalledQueues }),
})
