import { Duration } from 'aws-cdk-lib'
import type { Table } from 'aws-cdk-lib/aws-dynamodb'
import { EventBus, Rule, Schedule } from 'aws-cdk-lib/aws-events'
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets'
import { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import { Construct } from 'constructs'
import { envNames, type LagMetrics } from '../functions/edge/env.ts'
import { Alarms, serviceName } from './alarms.ts'
import { Api } from './api.ts'
import { NotifyJobs, notifyTimeout } from './notify-jobs.ts'
import { ServiceFunction } from './service-function.ts'
import { Tables } from './tables.ts'

export type PmqProps = {
  /**
   * IANA name of the time zone in which PMQ's clients are told when a message was sent.
   * @default - the service's own default
   */
  timeZone?: string
  /**
   * How long a long poll is held, in milliseconds. A waiting function is paid for.
   * @default - the service's own default
   */
  pollHoldMs?: number
  /**
   * Whether consumers may belong to sub-environments, which have copies of their own of the groups that they join.
   * @default false
   */
  subEnvironments?: boolean
  /**
   * ARNs of the Lambda functions that groups' targets may invoke, each as a target names it: with a qualifier or without.
   * @default - none
   */
  lambdaConsumers?: string[]
  /**
   * Networks (CIDR) of PMQ's own clients, which are called back at `http://{ip}:{port}/mq/client/notify`. The notify function
   * reaches only what is public.
   * @default - none
   */
  callbackNetworks?: string[]
  /**
   * Ports that webhooks may have.
   * @default [443, 8443]
   */
  webhookPorts?: number[]
  /**
   * For which groups and topics it is a metric of CloudWatch how many messages wait, and for how long. Each pair is two metrics,
   * 0.60 USD for a month in which they are written. `behind`: where something waits.
   * @default 'behind'
   */
  lagMetrics?: LagMetrics
}

/** API Gateway gives a function 30 seconds at most; what runs longer answers nobody. */
const apiTimeout = Duration.seconds(29)
/** What remains of `apiTimeout` for the work before and after a held poll. */
const maxPollHoldMs = 20_000

/**
 * The whole service: two tables, five functions split by permission and traffic, an HTTP API in front of three of them,
 * and for what happens without a caller an event bus and a schedule, both of which call the tick.
 */
export class Pmq extends Construct {
  readonly url: string
  readonly bus: EventBus
  readonly tables: Tables
  readonly alarms: Alarms

  constructor(scope: Construct, id: string, props: PmqProps = {}) {
    super(scope, id)
    if (props.pollHoldMs !== undefined && !(props.pollHoldMs >= 0 && props.pollHoldMs <= maxPollHoldMs)) {
      throw new RangeError(
        `pollHoldMs (${props.pollHoldMs}) must be 0 to ${maxPollHoldMs}: API Gateway waits 30 seconds`,
      )
    }
    const tables = new Tables(this, 'Tables')
    const bus = new EventBus(this, 'Bus')
    const stored = {
      [envNames.logTable]: tables.log.tableName,
      [envNames.registryTable]: tables.registry.tableName,
    }
    const announcing = { ...stored, [envNames.bus]: bus.eventBusName }
    const timeZone = { ...(props.timeZone !== undefined && { [envNames.timeZone]: props.timeZone }) }
    const settings = {
      ...timeZone,
      ...(props.pollHoldMs !== undefined && { [envNames.pollHoldMs]: String(props.pollHoldMs) }),
      ...(props.subEnvironments && { [envNames.subEnvironments]: '1' }),
    }

    const { lambdaConsumers = [], callbackNetworks = [], webhookPorts = [] } = props
    const targetSettings = {
      ...(lambdaConsumers.length > 0 && {
        [envNames.lambdaConsumers]: lambdaConsumers.join(','),
      }),
      ...(callbackNetworks.length > 0 && { [envNames.callbackNetworks]: callbackNetworks.join(',') }),
      ...(webhookPorts.length > 0 && { [envNames.webhookPorts]: webhookPorts.join(',') }),
    }

    const publish = new ServiceFunction(this, 'Publish', {
      entry: 'publish',
      description: 'PMQ: appends messages, and what was not handled, to the log',
      // An append gives up after a few seconds; the rest is a cold start.
      timeout: Duration.seconds(15),
      environment: { ...announcing, [envNames.serviceName]: serviceName(this) },
    })
    const consume = new ServiceFunction(this, 'Consume', {
      entry: 'consume',
      description: 'PMQ: registration, heartbeats, pulls and commits of consumers',
      timeout: apiTimeout,
      environment: { ...announcing, ...settings },
    })
    const admin = new ServiceFunction(this, 'Admin', {
      entry: 'admin',
      description: 'PMQ: topics, groups and subscriptions',
      timeout: apiTimeout,
      environment: { ...announcing, ...targetSettings },
    })
    const tick = new ServiceFunction(this, 'Tick', {
      entry: 'tick',
      description: 'PMQ: expires members, rebalances groups, checkpoints queues',
      // Until the next one starts. Two at once do no harm; they only pay twice.
      timeout: Duration.seconds(60),
      environment: {
        ...announcing,
        [envNames.serviceName]: serviceName(this),
        ...(props.lagMetrics !== undefined && { [envNames.lagMetrics]: props.lagMetrics }),
      },
    })

    const notify = new ServiceFunction(this, 'Notify', {
      entry: 'notify',
      description: 'PMQ: tells webhooks, functions and clients of messages, or hands them on',
      timeout: notifyTimeout,
      environment: { ...announcing, ...timeZone, ...targetSettings },
    })
    const { deadJobs } = new NotifyJobs(this, 'NotifyJobs', { notify, bus })

    grant(publish, tables.log, 'PutItem', 'Query')
    grant(publish, tables.registry, 'Query')
    // Anybody who consumes may have it write; so it writes what becomes of failed messages, and nothing else there.
    grantPartitions(publish, tables.registry, 'FAILED#', 'UpdateItem')
    // What it has handled again.
    grant(admin, tables.log, 'PutItem')
    for (const each of [consume, admin, tick]) grant(each, tables.log, 'Query')
    for (const each of [consume, tick]) grant(each, tables.registry, ...registryActions, 'GetItem')
    grant(admin, tables.registry, ...registryActions)
    grant(notify, tables.log, 'PutItem', 'Query')
    grant(notify, tables.registry, 'GetItem', 'PutItem', 'Query', 'UpdateItem')
    if (lambdaConsumers.length > 0) {
      const invoke = new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources: lambdaConsumers })
      notify.role.addToPrincipalPolicy(invoke)
    }
    for (const each of [publish, consume, admin, tick, notify]) bus.grantPutEventsTo(each.role)

    // Nothing is retried: whatever a tick has missed the next one does, within a minute.
    tick.lambda.configureAsyncInvoke({ retryAttempts: 0, maxEventAge: Duration.minutes(1) })
    const target = new LambdaFunction(tick.lambda, { retryAttempts: 0 })
    new Rule(this, 'EveryMinute', { schedule: Schedule.rate(Duration.minutes(1)), targets: [target] })
    new Rule(this, 'GroupChanged', {
      eventBus: bus,
      eventPattern: { source: ['pmq'], detailType: ['GroupChanged'] },
      targets: [target],
    })

    this.tables = tables
    this.bus = bus
    this.alarms = new Alarms(this, 'Alarms', {
      bus,
      functions: { publish, consume, admin, tick, notify },
      tables,
      deadJobs,
    })
    this.url = new Api(this, 'Api', { publish: publish.lambda, consume: consume.lambda, admin: admin.lambda }).url
  }
}

/** What whoever changes groups does with items. The checks are of a second item, in a transaction that changes a first. */
const registryActions = ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'PutItem', 'Query', 'UpdateItem'] as const
type Action = (typeof registryActions)[number] | 'GetItem'

/**
 * By action, as far as the use cases of a function go; a transaction needs the actions of its items. CDK's
 * `grantReadData` and `grantWriteData` would also allow scans and whatever else reads or writes.
 */
function grant(to: ServiceFunction, table: Table, ...actions: Action[]) {
  table.grant(to.role, ...actions.map(action => `dynamodb:${action}`))
}

/** The same for the partitions alone whose keys begin so. */
function grantPartitions(to: ServiceFunction, table: Table, prefix: string, ...actions: Action[]) {
  to.role.addToPrincipalPolicy(
    new PolicyStatement({
      actions: actions.map(action => `dynamodb:${action}`),
      resources: [table.tableArn],
      conditions: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [`${prefix}*`] } },
    }),
  )
}
