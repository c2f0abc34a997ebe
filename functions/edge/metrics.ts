import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics'
import type { TickReport } from '../../core/tick.ts'
import { metricNames } from './env.ts'

/** How many groups a metric's line names: an operator needs one to begin with, and each line is paid for. */
const maxNamed = 20

/**
 * Writes what a tick has found as metrics in the embedded format of CloudWatch: a line of the log, and no request. Nothing
 * is written where all is well, which the alarms take for well. `serviceName` tells one stack from another.
 */
export function reportTick({ unhandled }: TickReport, serviceName: string): void {
  if (unhandled.length === 0) return
  const metrics = new Metrics({ namespace: metricNames.namespace, serviceName })
  const count = unhandled.reduce((sum, { topicNames }) => sum + topicNames.length, 0)
  metrics.addMetric(metricNames.unhandledTopics, MetricUnit.Count, count)
  const named = unhandled
    .slice(0, maxNamed)
    .map(({ groupName, topicNames }) => `${groupName}: ${topicNames.join(', ')}`)
  metrics.addMetadata('unhandled', named.join('; '))
  metrics.publishStoredMetrics()
}
