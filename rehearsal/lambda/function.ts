import { randomBytes, randomUUID } from 'node:crypto'
import type { MovableClock } from '../clock.ts'
import type { Access, Caller } from '../iam/access.ts'
import { account, arnOf } from '../template/account.ts'
import type { FunctionSpec } from './function-spec.ts'
import { type Instance, type Outcome, startInstance } from './instance.ts'

/** What calls of AWS an instance signs with: by the key it is known whose role asks. */
export type Credentials = { accessKeyId: string; secretAccessKey: string; sessionToken: string; caller: Caller }

export type Invocation = Outcome | { outcome: 'throttled' }

/** A function with its instances. */
export type RunningFunction = {
  spec: FunctionSpec
  caller: Caller
  /** Lets an instance serve the request: one that has nothing to do, or another one. */
  invoke(payload: string, requestId?: string): Promise<Invocation>
  /** How many instances have been started. */
  readonly coldStarts: number
  stop(): Promise<void>
}

export type FunctionOptions = {
  /** URL of what stands for the AWS services. */
  awsUrl: string
  clock: MovableClock
  access: Access
  /** Instances of one function on this machine; requests beyond wait for one. */
  maxInstances: number
  /** Makes the credentials of an instance known. */
  onCredentials(credentials: Credentials): void
  onLog(functionName: string, line: string): void
  onFailure(functionName: string, error: { errorType: string; errorMessage: string }): void
}

export function createFunction(spec: FunctionSpec, options: FunctionOptions): RunningFunction {
  const { clock, access, maxInstances } = options
  const caller: Caller = { name: spec.name, principal: { roleArn: spec.roleArn } }
  const instances = new Set<Instance>()
  const idle: Instance[] = []
  const waiting: ((instance: Instance | undefined) => void)[] = []
  const mostAtOnce = Math.min(spec.reservedConcurrency ?? maxInstances, maxInstances)
  let running = 0
  let coldStarts = 0
  let isStopped = false

  function start(): Instance {
    coldStarts++
    const logStream = `${new Date(clock.now()).toISOString().slice(0, 10).replaceAll('-', '/')}/[$LATEST]${randomBytes(16).toString('hex')}`
    const stream = arnOf('logs', `log-group:${spec.logGroup}:log-stream:${logStream}`)
    access.ask(caller, 'logs:CreateLogStream', stream)
    // Lambda writes when a request begins and ends, whatever the function writes.
    access.ask(caller, 'logs:PutLogEvents', stream)
    const credentials = makeCredentials(caller)
    options.onCredentials(credentials)
    const instance = startInstance(spec, {
      environment: environmentOf(spec, logStream, credentials, options.awsUrl),
      clock,
      onLog: line => options.onLog(spec.name, line),
    })
    instances.add(instance)
    return instance
  }

  /** Undefined: the function has been stopped. */
  async function take(): Promise<Instance | undefined> {
    if (isStopped) return undefined
    for (let instance = idle.pop(); instance; instance = idle.pop()) {
      if (!instance.isGone) return instance
      instances.delete(instance)
    }
    if (instances.size < mostAtOnce) return start()
    return new Promise(resolve => waiting.push(resolve))
  }

  function giveBack(instance: Instance): void {
    if (instance.isGone) instances.delete(instance)
    const next = waiting.shift()
    if (next) next(!instance.isGone ? instance : isStopped ? undefined : start())
    else if (!instance.isGone) idle.push(instance)
  }

  return {
    spec,
    caller,
    get coldStarts() {
      return coldStarts
    },
    async invoke(payload, requestId = randomUUID()) {
      if (spec.reservedConcurrency !== undefined && running >= spec.reservedConcurrency) return { outcome: 'throttled' }
      running++
      const instance = await take()
      if (!instance) return { outcome: 'throttled' }
      try {
        const outcome = await instance.invoke(requestId, payload)
        if (outcome.outcome === 'failed') options.onFailure(spec.name, outcome.error)
        return outcome
      } finally {
        running--
        giveBack(instance)
      }
    },
    async stop() {
      isStopped = true
      for (const refuse of waiting.splice(0)) refuse(undefined)
      await Promise.all(Array.from(instances, instance => instance.end()))
    },
  }
}

function makeCredentials(caller: Caller): Credentials {
  const random = (bytes: number) => randomBytes(bytes).toString('hex')
  return {
    accessKeyId: `ASIA${random(8).toUpperCase()}`,
    secretAccessKey: random(20),
    sessionToken: random(32),
    caller,
  }
}

/**
 * What a function finds in its environment: what the template says, what Lambda adds, and where the AWS SDK finds AWS. It
 * is one address for all services, so that no call can leave this machine.
 */
function environmentOf(
  spec: FunctionSpec,
  logStream: string,
  { accessKeyId, secretAccessKey, sessionToken }: Credentials,
  awsUrl: string,
): Record<string, string> {
  return {
    ...spec.environment,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
    AWS_REGION: account.region,
    AWS_DEFAULT_REGION: account.region,
    AWS_ENDPOINT_URL: awsUrl,
    AWS_EXECUTION_ENV: `AWS_Lambda_nodejs${process.versions.node.split('.')[0]}.x`,
    AWS_LAMBDA_FUNCTION_NAME: spec.name,
    AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(spec.memoryMb),
    AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
    AWS_LAMBDA_LOG_GROUP_NAME: spec.logGroup,
    AWS_LAMBDA_LOG_STREAM_NAME: logStream,
    LAMBDA_TASK_ROOT: spec.folder,
    _HANDLER: spec.handler,
    LANG: 'en_US.UTF-8',
    TZ: ':UTC',
  }
}
