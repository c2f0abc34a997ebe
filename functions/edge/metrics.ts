import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics'
import type { TickReport } from '../../core/tick/report.ts'
import { metricNames } from './env.ts'

/** How many of those that it counts a metric's line names: an operator begins with one, and each byte is paid for. */
const maxNamed = 20

/**
 * Writes what a tick has found as a metric in the embedded format of CloudWatch: a line of the log, and no request. Nothing
 * is written where all is well, which the alarm takes for well. `serviceName` tells one stack from another.
 */
export function reportTick({ unhandled }: Pick<TickReport, 'unhandled'>, serviceName: string): void {
  if (unhandled.length === 0) return
  const metrics = new Metrics({ namespace: metricNames.namespace, serviceName })
  const topics = unhandled.flatMap(({ groupName, topicNames }) => topicNames.map(name => `${groupName}: ${name}`))
  metrics.addMetric(metricNames.unhandledTopics, MetricUnit.Count, topics.length)
  metrics.addMetadata(`which${metricNames.unhandledTopics}`, topics.slice(0, maxNamed).join('; '))
  metrics.publishStoredMetrics()
}
