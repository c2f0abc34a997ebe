import { Duration, Stack } from 'aws-cdk-lib'
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch'
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions'
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

    const unhandled = new Alarm(this, 'UnhandledTopics', {
      alarmDescription:
        'A running consumer group subscribes to topics that none of its consumers has a handler for: their messages wait. ' +
        'docs/operations.md, "Topics that nobody handles".',
      metric: new Metric({
        namespace: metricNames.namespace,
        metricName: metricNames.unhandledTopics,
        dimensionsMap: { service: serviceName(this) },
        statistic: 'Maximum',
        period: Duration.minutes(1),
      }),
      threshold: 0,
      comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
      // A rolling deployment may be without the new handler for a few minutes.
      evaluationPeriods: 10,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    })
    const notify = new SnsAction(this.topic)
    unhandled.addAlarmAction(notify)
    unhandled.addOkAction(notify)
  }
}

/** Tells the metrics of one stack from those of another one in the same account. */
export const serviceName = (scope: Construct) => Stack.of(scope).stackName
