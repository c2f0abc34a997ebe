import { Duration, Stack } from 'aws-cdk-lib'
import { Alarm, ComparisonOperator, type IMetric, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch'
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions'
import { Operation } from 'aws-cdk-lib/aws-dynamodb'
import { type EventBus, EventField, Rule, RuleTargetInput } from 'aws-cdk-lib/aws-events'
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { Topic } from 'aws-cdk-lib/aws-sns'
import type { Queue } from 'aws-cdk-lib/aws-sqs'
import { Construct } from 'constructs'
import { metricNames } from '../functions/edge/env.ts'
import type { ServiceFunction } from './service-function.ts'
import type { Tables } from './tables.ts'

export type AlarmsProps = {
  bus: EventBus
  functions: Record<'publish' | 'consume' | 'admin' | 'tick' | 'notify', ServiceFunction>
  tables: Tables
  deadJobs: Queue
}

/**
 * What wakes an operator: alarms of CloudWatch, what the service says itself on its bus, and the SNS topic that both are sent
 * to. Each has its paragraph in `docs/operations.md`.
 */
export class Alarms extends Construct {
  /** Whoever subscribes to it (an e-mail address, a pager) hears of every alarm and of its end. */
  readonly topic: Topic

  constructor(scope: Construct, id: string, { bus, functions, tables, deadJobs }: AlarmsProps) {
    super(scope, id)
    this.topic = new Topic(this, 'Topic', { displayName: 'PMQ alarms', enforceSSL: true })
    // The policy that enforces TLS replaces the one that a topic has by itself, which lets alarms of its account publish.
    this.letPublish('cloudwatch.amazonaws.com', { StringEquals: { 'aws:SourceAccount': Stack.of(this).account } })
    this.tellFrom(bus)

    // A rolling deployment may be without the new handler for a few minutes.
    this.alarmOf('UnhandledTopics', this.counted(metricNames.unhandledTopics), 10, {
      what: 'A running consumer group subscribes to topics that none of its consumers has a handler for: their messages wait.',
      paragraph: 'Topics that nobody handles',
    })
    this.alarmOf('DeadLetters', this.counted(metricNames.deadLetters), 1, {
      what: 'A consumer group has failed to handle messages for the last time: they are dead letters.',
      paragraph: 'Dead letters',
    })
    this.alarmOf('DeadJobs', deadJobs.metricApproximateNumberOfMessagesVisible({ period, statistic: 'Maximum' }), 1, {
      what: 'Jobs of the notify function have failed again and again, and are kept in its dead-letter queue.',
      paragraph: 'Jobs of the notify function that failed',
    })
    const running = functions.tick.lambda.metricInvocations({ period, statistic: 'Sum' })
    this.alarmOf('TickNotRunning', running, 5, {
      what: 'The tick has not run for five minutes: dead consumers keep their queues, and lag is not looked at.',
      paragraph: 'The tick does not run',
      isBelow: true,
    })
    for (const [name, { lambda }] of Object.entries(functions)) {
      const capital = name.charAt(0).toUpperCase() + name.slice(1)
      // One that fails is tried again; three minutes of it are no accident.
      this.alarmOf(`${capital}Errors`, lambda.metricErrors({ period, statistic: 'Sum' }), 3, {
        what: `Invocations of the ${name} function fail.`,
        paragraph: 'A function fails',
      })
      this.alarmOf(`${capital}Throttles`, lambda.metricThrottles({ period, statistic: 'Sum' }), 3, {
        what: `Lambda refuses invocations of the ${name} function: the account has no more of them at once.`,
        paragraph: 'A function is throttled',
      })
    }
    for (const [name, table] of Object.entries({ Log: tables.log, Registry: tables.registry })) {
      const operations = name === 'Log' ? [Operation.PUT_ITEM, Operation.QUERY] : registryOperations
      const throttled = table.metricThrottledRequestsForOperations({ operations, period })
      this.alarmOf(`${name}TableThrottles`, throttled, 5, {
        what: `DynamoDB throttles requests to the ${name.toLowerCase()} table.`,
        paragraph: 'DynamoDB throttles or fails',
      })
      const failed = table.metricSystemErrorsForOperations({ operations, period })
      this.alarmOf(`${name}TableErrors`, failed, 3, {
        what: `DynamoDB fails requests to the ${name.toLowerCase()} table.`,
        paragraph: 'DynamoDB throttles or fails',
      })
    }
  }

  /** What the service says itself: once when it begins, and once when it is over. */
  private tellFrom(eventBus: EventBus) {
    const rule = new Rule(this, 'Told', {
      eventBus,
      eventPattern: { source: ['pmq'], detailType: ['AlarmRaised', 'AlarmCleared'] },
      targets: [
        {
          bind: () => ({
            arn: this.topic.topicArn,
            input: RuleTargetInput.fromText(
              `${EventField.fromPath('$.detail-type')}: ${EventField.fromPath('$.detail.text')}. docs/operations.md, "Alarms that the service tells".`,
            ),
          }),
        },
      ],
    })
    this.letPublish('events.amazonaws.com', { ArnEquals: { 'aws:SourceArn': rule.ruleArn } })
  }

  private letPublish(service: string, conditions: Record<string, Record<string, string>>) {
    this.topic.addToResourcePolicy(
      new PolicyStatement({
        actions: ['sns:Publish'],
        principals: [new ServicePrincipal(service)],
        resources: [this.topic.topicArn],
        conditions,
      }),
    )
  }

  /** What the functions count. They write no count of what is well. */
  private counted(metricName: string): IMetric {
    const dimensionsMap = { service: serviceName(this) }
    return new Metric({ namespace: metricNames.namespace, metricName, dimensionsMap, statistic: 'Maximum', period })
  }

  /** An alarm while a metric is above 0 for so many minutes, or below 1. */
  private alarmOf(id: string, metric: IMetric, minutes: number, { what, paragraph, isBelow = false }: Described) {
    const alarm = new Alarm(this, id, {
      alarmDescription: `${what} docs/operations.md, "${paragraph}".`,
      metric,
      threshold: isBelow ? 1 : 0,
      comparisonOperator: isBelow ? ComparisonOperator.LESS_THAN_THRESHOLD : ComparisonOperator.GREATER_THAN_THRESHOLD,
      evaluationPeriods: minutes,
      treatMissingData: isBelow ? TreatMissingData.BREACHING : TreatMissingData.NOT_BREACHING,
    })
    const notify = new SnsAction(this.topic)
    alarm.addAlarmAction(notify)
    alarm.addOkAction(notify)
  }
}

const period = Duration.minutes(1)

const registryOperations = [
  Operation.BATCH_GET_ITEM,
  Operation.DELETE_ITEM,
  Operation.GET_ITEM,
  Operation.PUT_ITEM,
  Operation.QUERY,
  Operation.TRANSACT_WRITE_ITEMS,
  Operation.UPDATE_ITEM,
]

type Described = { what: string; paragraph: string; isBelow?: boolean }

/** Tells the metrics of one stack from those of another one in the same account. */
export const serviceName = (scope: Construct) => Stack.of(scope).stackName
