import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics'
import type { TickReport } from '../../core/tick/report.ts'
import { metricNames } from './env.ts'

/** How many of those that it counts a metric's line names: an operator begins with one, and each byte is paid for. */
const maxNamed = 20

/**
 * Writes what a tick has found as metrics in the embedded format of CloudWatch: a line of the log, and no request. Nothing
 * is written where all is well, which the alarms take for well. `serviceName` tells one stack from another.
 */
export function reportTick(
  { unhandled, stalled }: Pick<TickReport, 'unhandled' | 'stalled'>,
  serviceName: string,
): void {
  if (unhandled.length === 0 && stalled.length === 0) return
  const metrics = new Metrics({ namespace: metricNames.namespace, serviceName })
  const add = (metricName: string, named: string[]) => {
    if (named.length === 0) return
    metrics.addMetric(metricName, MetricUnit.Count, named.length)
    metrics.addMetadata(`which${metricName}`, named.slice(0, maxNamed).join('; '))
  }
  const topics = unhandled.flatMap(({ groupName, topicNames }) => topicNames.map(name => `${groupName}: ${name}`))
  add(metricNames.unhandledTopics, topics)
  add(
    metricNames.stalledQueues,
    stalled.map(({ groupName, topicName, queueId }) => `${groupName}: queue ${queueId} of ${topicName}`),
  )
  metrics.publishStoredMetrics()
}
