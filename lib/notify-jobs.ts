import { Duration } from 'aws-cdk-lib'
import { type EventBus, Rule } from 'aws-cdk-lib/aws-events'
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets'
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { EventSourceMapping } from 'aws-cdk-lib/aws-lambda'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { Construct } from 'constructs'
import { envNames } from '../functions/edge/env.ts'
import type { ServiceFunction } from './service-function.ts'

export type NotifyJobsProps = { notify: ServiceFunction; bus: EventBus }

/** Of the notify function. A push goes on for a minute; the rest is to begin, and to write down how it went. */
export const notifyTimeout = Duration.seconds(90)

/**
 * What the notify function hears: the bus, and a queue of what it is to do later; and where that ends which it cannot do.
 * What is to be heard later, or by all means (alarms), comes by the queue and so a second later: the queue's own delay, which a
 * job that the function sends itself replaces by its own.
 */
export class NotifyJobs extends Construct {
  /** Jobs that have failed again and again. */
  readonly deadJobs: Queue

  constructor(scope: Construct, id: string, { notify, bus }: NotifyJobsProps) {
    super(scope, id)
    this.deadJobs = new Queue(this, 'DeadJobs', { enforceSSL: true, retentionPeriod: Duration.days(14) })
    const jobs = new Queue(this, 'Jobs', {
      enforceSSL: true,
      deliveryDelay: Duration.seconds(1),
      // So long a job is nobody else's: longer than the function has.
      visibilityTimeout: notifyTimeout.plus(Duration.seconds(30)),
      retentionPeriod: Duration.days(4),
      deadLetterQueue: { queue: this.deadJobs, maxReceiveCount: 5 },
    })
    const { lambda, role } = notify
    lambda.addEnvironment(envNames.jobQueue, jobs.queueUrl)
    jobs.grant(role, 'sqs:SendMessage', 'sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes')
    // Not by `SqsEventSource`, which would grant more.
    new EventSourceMapping(this, 'DoJobs', {
      target: lambda,
      eventSourceArn: jobs.queueArn,
      batchSize: 10,
      reportBatchItemFailures: true,
    })
    // What fails again and again is given up: the tick tells of the queue once more.
    lambda.configureAsyncInvoke({ retryAttempts: 2, maxEventAge: Duration.minutes(10) })
    new Rule(this, 'AtOnce', {
      eventBus: bus,
      eventPattern: { source: ['pmq'], detailType: ['QueueAppended', 'TargetTest'] },
      targets: [new LambdaFunction(lambda)],
    })
    const later = new Rule(this, 'Later', {
      eventBus: bus,
      eventPattern: { source: ['pmq'], detailType: ['QueueBusy', 'AlarmRaised', 'AlarmCleared'] },
      // Not by `SqsQueue`, which would grant more.
      targets: [{ bind: () => ({ arn: jobs.queueArn }) }],
    })
    jobs.addToResourcePolicy(
      new PolicyStatement({
        actions: ['sqs:SendMessage'],
        principals: [new ServicePrincipal('events.amazonaws.com')],
        resources: [jobs.queueArn],
        conditions: { ArnEquals: { 'aws:SourceArn': later.ruleArn } },
      }),
    )
  }
}
