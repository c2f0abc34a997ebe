import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics'
import type { TickReport } from '../../core/tick/report.ts'
import { metricNames } from './env.ts'

/** How many of those that it counts a metric's line names: an operator begins with one, and each byte is paid for. */
const maxNamed = 20

/**
 * Writes what a tick has found as metrics in the embedded format of CloudWatch: a line of the log, and no request. Nothing
 * is written where all is well, which the alarms take for well. `serviceName` tells one stack from another.
 */
export function reportTick({ unhandled, left }: Pick<TickReport, 'unhandled' | 'left'>, serviceName: string): void {
  if (unhandled.length === 0 && left === 0) return
  const metrics = new Metrics({ namespace: metricNames.namespace, serviceName })
  if (unhandled.length > 0) {
    const topics = unhandled.flatMap(({ groupName, topicNames }) => topicNames.map(name => `${groupName}: ${name}`))
    metrics.addMetric(metricNames.unhandledTopics, MetricUnit.Count, topics.length)
    metrics.addMetadata(`which${metricNames.unhandledTopics}`, topics.slice(0, maxNamed).join('; '))
  }
  if (left > 0) metrics.addMetric(metricNames.leftByTick, MetricUnit.Count, left)
  metrics.publishStoredMetrics()
}
