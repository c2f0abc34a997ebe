/**
 * Names on which the infrastructure and the functions agree. The environment: the one writes these, only the entries read
 * them.
 */
export const envNames = {
  logTable: 'PMQ_LOG_TABLE',
  registryTable: 'PMQ_REGISTRY_TABLE',
  bus: 'PMQ_BUS',
  /** URL of the queue of the notify function's jobs. */
  jobQueue: 'PMQ_JOB_QUEUE',
  /** What metrics name as their service: one stack of several. */
  serviceName: 'PMQ_SERVICE_NAME',
  /** IANA name of the zone in which PMQ's clients are told times. Default UTC. */
  timeZone: 'PMQ_TIME_ZONE',
  /** How long a poll of a group is held while nothing changes, in milliseconds. Default 5000. */
  pollHoldMs: 'PMQ_POLL_HOLD_MS',
  /** `1`: consumers may belong to sub-environments, which have copies of the groups that they join. Default: they do not. */
  subEnvironments: 'PMQ_SUB_ENVIRONMENTS',
  /** Ports that webhooks may have, comma separated. Default 443,8443. */
  webhookPorts: 'PMQ_WEBHOOK_PORTS',
  /** Networks (CIDR) in which PMQ's clients are called back, comma separated. Default none. */
  callbackNetworks: 'PMQ_CALLBACK_NETWORKS',
  /** Lambda functions that may be invoked, comma separated: what a target has to be called. Default none. */
  lambdaConsumers: 'PMQ_LAMBDA_CONSUMERS',
  /** Of which lags metrics are written: `behind`, `all` or `none`. Default `behind`. */
  lagMetrics: 'PMQ_LAG_METRICS',
  /** Another DynamoDB than the region's. */
  dynamodbEndpoint: 'PMQ_DYNAMODB_ENDPOINT',
} as const

/** What the functions' metrics are filed under, by which the alarms find them. Their `service` is the stack. */
export const metricNames = {
  namespace: 'PMQ',
  unhandledTopics: 'UnhandledTopics',
  deadLetters: 'DeadLetters',
  /** By group and topic. */
  lag: 'Lag',
  oldestUnreadAge: 'OldestUnreadAge',
} as const

/** Reads a list of what has no commas. */
export const listOf = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map(each => each.trim())
    .filter(each => each !== '')

/**
 * Of which lags metrics are written. Each group and topic are two metrics, and one costs 0.30 USD for a month in which it is
 * written. `behind`: of those where something waits, and once when nothing does any more. `all`: of all that are looked at.
 */
export type LagMetrics = 'behind' | 'all' | 'none'
export const lagMetricsModes: readonly LagMetrics[] = ['behind', 'all', 'none']

export type Environment = Record<string, string | undefined>

export function requireEnv(env: Environment, name: string): string {
  const value = env[name]
  if (!value) throw new Error(`the environment variable ${name} is not set`)
  return value
}
