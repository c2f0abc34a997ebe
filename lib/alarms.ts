import { Duration, Stack } from 'aws-cdk-lib'
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch'
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions'
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { Topic } from 'aws-cdk-lib/aws-sns'
import { Construct } from 'constructs'
import { metricNames } from '../functions/edge/env.ts'

/** What wakes an operator: alarms, and the SNS topic that they are sent to. Each has its paragraph in `docs/operations.md`. */
export class Alarms extends Construct {
  /** Whoever subscribes to it (an e-mail address, a pager) hears of every alarm and of its end. */
  readonly topic: Topic

  constructor(scope: Construct, id: string) {
    super(scope, id)
    this.topic = new Topic(this, 'Topic', { displayName: 'PMQ alarms', enforceSSL: true })
    // The policy that enforces TLS replaces the one that a topic has by itself, which lets alarms of its account publish.
    this.topic.addToResourcePolicy(
      new PolicyStatement({
        actions: ['sns:Publish'],
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        resources: [this.topic.topicArn],
        conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(this).account } },
      }),
    )

    // A rolling deployment may be without the new handler for a few minutes.
    this.alarmAt('UnhandledTopics', metricNames.unhandledTopics, 10, {
      what: 'A running consumer group subscribes to topics that none of its consumers has a handler for: their messages wait.',
      paragraph: 'Topics that nobody handles',
    })
    this.alarmAt('StalledQueues', metricNames.stalledQueues, 1, {
      what: 'Messages wait in queues of a running consumer group, and nothing of them has been committed for ten minutes.',
      paragraph: 'Queues that stall',
    })
    this.alarmAt('DeadLetters', metricNames.deadLetters, 1, {
      what: 'A consumer group has failed to handle messages for the last time: they are dead letters.',
      paragraph: 'Dead letters',
    })
  }

  /** An alarm while a count is above 0 for so many minutes. The functions write no count of what is well. */
  private alarmAt(id: string, metricName: string, minutes: number, { what, paragraph }: Described) {
    const alarm = new Alarm(this, id, {
      alarmDescription: `${what} docs/operations.md, "${paragraph}".`,
      metric: new Metric({
        namespace: metricNames.namespace,
        metricName,
        dimensionsMap: { service: serviceName(this) },
        statistic: 'Maximum',
        period: Duration.minutes(1),
      }),
      threshold: 0,
      comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
      evaluationPeriods: minutes,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    })
    const notify = new SnsAction(this.topic)
    alarm.addAlarmAction(notify)
    alarm.addOkAction(notify)
  }
}

type Described = { what: string; paragraph: string }

/** Tells the metrics of one stack from those of another one in the same account. */
export const serviceName = (scope: Construct) => Stack.of(scope).stackName
