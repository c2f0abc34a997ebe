import type { DeadLetters } from '../../core/core.ts'
import { metricNames } from './env.ts'

/**
 * Writes that a group has given messages up as a metric in the embedded format of CloudWatch: a line of the log, and no
 * request. By hand, since the library that the tick has for it takes longer to load than a publish. Which group and topic
 * it is stands beside the metric: as dimensions each pair would be a metric of its own, and be paid for.
 */
export function reportDeadLetters(
  { groupName, topicName, count }: DeadLetters,
  serviceName: string,
  nowMs: number,
): void {
  const { namespace, deadLetters: Name } = metricNames
  const Metrics = [{ Name, Unit: 'Count' }]
  const _aws = { Timestamp: nowMs, CloudWatchMetrics: [{ Namespace: namespace, Dimensions: [['service']], Metrics }] }
  console.log(JSON.stringify({ _aws, service: serviceName, [Name]: count, groupName, topicName }))
}
