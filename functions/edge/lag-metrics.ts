import type { Lag } from '../../core/lag.ts'
import { type LagMetrics, metricNames } from './env.ts'

const maxRemembered = 100_000

/**
 * Writes lags as metrics in the embedded format of CloudWatch, a line of the log for each group and topic: how many messages
 * wait, and for how long the oldest. What is in a fail topic is another topic's. It remembers which were behind, for one zero.
 */
export function createLagMetrics(serviceName: string, mode: LagMetrics): (lags: readonly Lag[], nowMs: number) => void {
  const wereBehind = new Set<string>()

  return (lags, nowMs) => {
    if (mode === 'none') return
    for (const lag of lags) {
      const topicName = lag.isFailTopic ? `${lag.topicName} (failed)` : lag.topicName
      const id = `${lag.groupName} ${topicName}`
      const isBehind = lag.messages > 0
      const wasBehind = wereBehind.delete(id)
      if (isBehind && wereBehind.size < maxRemembered) wereBehind.add(id)
      if (mode === 'all' || isBehind || wasBehind) write(lag, topicName, nowMs)
    }
  }

  function write({ groupName, messages, oldestAgeMs }: Lag, topicName: string, nowMs: number): void {
    const { namespace: Namespace, lag, oldestUnreadAge } = metricNames
    const Metrics = [
      { Name: lag, Unit: 'Count' },
      { Name: oldestUnreadAge, Unit: 'Seconds' },
    ]
    const _aws = {
      Timestamp: nowMs,
      CloudWatchMetrics: [{ Namespace, Dimensions: [['service', 'group', 'topic']], Metrics }],
    }
    const dimensions = { service: serviceName, group: groupName, topic: topicName }
    const values = { [lag]: messages, [oldestUnreadAge]: Math.round(oldestAgeMs / 1000) }
    console.log(JSON.stringify({ _aws, ...dimensions, ...values }))
  }
}
