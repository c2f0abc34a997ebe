import { expectAssumable } from '../iam/roles.ts'
import { arnOf } from '../template/account.ts'
import { asNumber, asRecord, asText, expectOnly, type Properties } from '../template/read.ts'
import type { Resolved, Stack } from '../template/stack.ts'
import { lambdaLimits } from './limits.ts'

/** A function of the template, as far as running it goes. */
export type FunctionSpec = {
  name: string
  arn: string
  roleArn: string
  /** What was uploaded. */
  folder: string
  handler: string
  timeoutMs: number
  memoryMb: number
  environment: Record<string, string>
  /** Instances at once; undefined: the account's, of which one machine has enough. */
  reservedConcurrency: number | undefined
  logGroup: string
  asynchronous: AsynchronousSpec
}

export type AsynchronousSpec = {
  retries: number
  maxAgeMs: number
  /** ARN of a queue that gets a record of what was given up: the request, and how it failed. */
  onFailureArn: string | undefined
  /** ARN of a queue that gets the request itself. */
  deadLetterArn: string | undefined
}

const known = [
  'Architectures',
  'Code',
  'DeadLetterConfig',
  'Description',
  'Environment',
  'FunctionName',
  'Handler',
  'LoggingConfig',
  'MemorySize',
  'ReservedConcurrentExecutions',
  'Role',
  'Runtime',
  'Tags',
  'Timeout',
]

export function readFunctions(stack: Stack): FunctionSpec[] {
  return stack.all('AWS::Lambda::Function').map(lambda => {
    const { id, ref: name, arn, properties, metadata } = lambda
    expectOnly(properties, id, known)
    expectNode(properties.Runtime, id)
    const roleArn = asText(properties.Role, id)
    expectAssumable(stack, roleArn, name)
    const { Variables = {} } = asRecord(properties.Environment ?? {}, id)
    const { LogGroup = `/aws/lambda/${name}` } = asRecord(properties.LoggingConfig ?? {}, id)
    const reserved = properties.ReservedConcurrentExecutions
    return {
      name,
      arn,
      roleArn,
      // Written by the command line of CDK, and on request by others.
      folder: `${stack.folder}/${asText(metadata['aws:asset:path'], `the asset of ${id}`)}`,
      handler: asText(properties.Handler, id),
      // Lambda's defaults.
      timeoutMs: asNumber(properties.Timeout ?? 3, id) * 1000,
      memoryMb: asNumber(properties.MemorySize ?? 128, id),
      environment: readEnvironment(asRecord(Variables, id), id),
      reservedConcurrency: reserved === undefined ? undefined : asNumber(reserved, id),
      logGroup: asText(LogGroup, id),
      asynchronous: readAsynchronous(stack, lambda),
    }
  })
}

function readEnvironment(variables: Properties, id: string): Record<string, string> {
  const entries = Object.entries(variables).map(([name, value]) => [name, asText(value, name)] as const)
  const bytes = entries.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0)
  if (bytes <= lambdaLimits.maxEnvironmentBytes) return Object.fromEntries(entries)
  throw new Error(`the environment of ${id} has ${bytes} bytes; Lambda takes ${lambdaLimits.maxEnvironmentBytes}`)
}

/** This machine runs Node as it is: another runtime would be another program. */
function expectNode(runtime: unknown, id: string): void {
  const ours = `nodejs${process.versions.node.split('.')[0]}.x`
  if (runtime !== ours)
    throw new Error(`${id} runs on ${runtime}; this is Node ${process.versions.node}, which is ${ours}`)
}

function readAsynchronous(stack: Stack, { id, ref, properties }: Resolved): AsynchronousSpec {
  const config = stack
    .all('AWS::Lambda::EventInvokeConfig')
    .find(({ properties }) => properties.FunctionName === ref && properties.Qualifier === '$LATEST')
  if (config) {
    const parts = ['FunctionName', 'Qualifier', 'MaximumEventAgeInSeconds', 'MaximumRetryAttempts', 'DestinationConfig']
    expectOnly(config.properties, config.id, parts)
  }
  const {
    MaximumEventAgeInSeconds = 6 * 3600,
    MaximumRetryAttempts = 2,
    DestinationConfig = {},
  } = config?.properties ?? {}
  const destinations = asRecord(DestinationConfig, id)
  expectOnly(destinations, `DestinationConfig of ${id}`, ['OnFailure'])
  const { Destination } = asRecord(destinations.OnFailure ?? {}, id)
  const { TargetArn } = asRecord(properties.DeadLetterConfig ?? {}, id)
  return {
    retries: asNumber(MaximumRetryAttempts, id),
    maxAgeMs: asNumber(MaximumEventAgeInSeconds, id) * 1000,
    onFailureArn: queueArnOf(Destination, id),
    deadLetterArn: queueArnOf(TargetArn, id),
  }
}

function queueArnOf(value: unknown, id: string): string | undefined {
  if (value === undefined) return undefined
  const arn = asText(value, id)
  if (arn.startsWith(arnOf('sqs', ''))) return arn
  throw new Error(`the rehearsal sends what ${id} has failed with to a queue, not to ${arn}`)
}
