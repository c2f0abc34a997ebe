import { cp, mkdtemp, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHttpServer } from '../bin/host/server.ts'
import { createActivity } from './activity.ts'
import { createDynamoDb } from './aws/dynamodb.ts'
import { createEventsApi } from './aws/events.ts'
import { createLambdaApi } from './aws/lambda.ts'
import { createAwsServer, type Services } from './aws/server.ts'
import { createSqsApi } from './aws/sqs.ts'
import { createMovableClock } from './clock.ts'
import { dynoxide } from './engine.ts'
import { tryAlarms } from './events/alarms.ts'
import { createBuses } from './events/bus.ts'
import { createDelivery, expectTargets } from './events/deliver.ts'
import { readRules } from './events/rules.ts'
import { createGateway } from './gateway.ts'
import { createAccess } from './iam/access.ts'
import { createAsynchronous } from './lambda/asynchronous.ts'
import { createFunction } from './lambda/function.ts'
import { type FunctionSpec, readFunctions } from './lambda/function-spec.ts'
import { type Neighbour, toSpec } from './lambda/neighbour.ts'
import { createReport, type Report } from './report.ts'
import { pollEventSource, readEventSources } from './sqs/event-source.ts'
import { createQueues } from './sqs/queues.ts'
import { createTables } from './tables.ts'
import { readAssembly } from './template/assembly.ts'
import { defaultBus } from './template/identities.ts'
import { resolveStack } from './template/stack.ts'

export type RehearsalOptions = {
  /** Of the HTTP API; 0: any free port. @default 0 */
  port?: number
  /** Whether schedules come due by the clock; otherwise only when `fireSchedules` is called. @default true */
  runsSchedules?: boolean
  /** Instances of one function at once; requests beyond wait for one. @default 10 */
  maxInstances?: number
  /** Functions that are in the account and not in the template, which ours may be told to invoke. */
  neighbours?: Neighbour[]
  /** Hears each line that a function logs. */
  onLog?: (functionName: string, line: string) => void
}

export type Rehearsal = {
  /** Of the HTTP API. */
  url: string
  /** Routes that ask for an IAM signature on AWS, and here take every request as signed. */
  signedRoutes: number
  /** Sets the clock of the stack ahead: what was to come within that time comes now. */
  advance(ms: number): void
  /** Lets all schedules come due, and waits for what follows. */
  fireSchedules(): Promise<void>
  /** Resolves when nothing is under way that nobody waits for. */
  settled(): Promise<void>
  /** What was published on the topics, by their ARN. */
  published(): ReadonlyMap<string, readonly string[]>
  /** How many messages a queue holds, by its name in the template. */
  queueLength(id: string): number
  coldStarts(): number
  report(): Report
  stop(): Promise<void>
}

const loopback = '127.0.0.1'

/**
 * Runs a synthesized stack on this machine: its functions as bundled, its routes, tables, rules, schedules and queues as
 * the template has them, and its policies asked about every call.
 */
export async function startRehearsal(path: string, options: RehearsalOptions = {}): Promise<Rehearsal> {
  const { port = 0, runsSchedules = true, maxInstances = 10, neighbours = [], onLog = () => {} } = options
  await using started = new AsyncDisposableStack()
  const assembly = await readAssembly(path)
  const clock = createMovableClock()

  // Both addresses are in the template's values, so they come first, and what answers comes to be behind them.
  const services: Services = {}
  const aws = createAwsServer(services, (caller, what) => report.notRehearsed(caller, what))
  const awsUrl = await listen(started, aws.server, 0)
  let gateway: ReturnType<typeof createGateway> | undefined
  const api = createHttpServer({
    match: (method, path) => gateway?.match(method, path),
    invoke: (matched, event, requestId) => (gateway ?? notYet()).invoke(matched, event, requestId),
    maxRequestBytes: maxGatewayBytes,
  })
  const apiUrl = await listen(started, api, port)

  const stack = resolveStack(assembly, { apiUrl, awsUrl })
  const access = createAccess(stack)
  const report = createReport(access)
  const engine = dynoxide()
  if (engine.skip) throw new Error(`a rehearsal needs dynoxide for its tables: ${engine.skip}`)
  const database = await engine.start()
  started.defer(() => database.stop())
  const partitionKeys = await createTables(stack, database.endpoint)
  const dynamoDb = createDynamoDb(database.endpoint, partitionKeys, access)
  started.defer(() => dynamoDb.close())

  const unzipped = await mkdtemp(join(tmpdir(), 'pmq-rehearsal-'))
  started.defer(() => rm(unzipped, { recursive: true, force: true }))
  const specs = [...readFunctions(stack), ...neighbours.map(toSpec)]
  const functions = new Map(
    await Promise.all(
      specs.map(async spec => {
        const running = createFunction(await unzip(spec, unzipped), {
          awsUrl,
          clock,
          access,
          maxInstances,
          onCredentials: aws.admit,
          onLog,
          onFailure: (name, { errorType, errorMessage }) =>
            report.failed(name, `${errorType}: ${errorMessage.replace(/^RequestId: \S+ /, '')}`),
        })
        started.defer(() => running.stop())
        return [spec.name, running] as const
      }),
    ),
  )

  const activity = createActivity(error => console.error('the rehearsal has failed', error))
  const queues = createQueues(stack, clock)
  const topics = new Map(stack.all('AWS::SNS::Topic').map(({ arn }) => [arn, [] as string[]]))
  const asynchronous = createAsynchronous({
    clock,
    activity,
    onGivenUp({ caller }, queueArn, body) {
      if (access.ask(caller, 'sqs:SendMessage', queueArn).refusal === undefined) queues.get(queueArn)?.send(body)
    },
  })
  const rules = readRules(stack)
  expectTargets(rules, { functions, queues, topics })
  const deliver = createDelivery({ access, functions, queues, topics, asynchronous })
  const buses = createBuses(rules, { clock, activity, deliver, runsSchedules })
  tryAlarms(stack, access)
  const busNames = new Set([defaultBus, ...stack.all('AWS::Events::EventBus').map(({ ref }) => ref)])
  services.dynamodb = dynamoDb.serve
  services.events = createEventsApi(buses, busNames, access)
  services.sqs = createSqsApi(queues, access)
  services.lambda = createLambdaApi(functions, asynchronous, access)
  const pollers = readEventSources(stack, queues, functions).map(source =>
    pollEventSource(source, { access, activity }),
  )
  gateway = createGateway(stack, functions, access)

  const running = started.move()
  return {
    url: apiUrl,
    signedRoutes: gateway.signedRoutes,
    advance: clock.advance,
    async fireSchedules() {
      for (const rule of rules) if (rule.everyMs !== undefined && rule.isEnabled) buses.fire(rule)
      await activity.settled()
    },
    settled: activity.settled,
    published: () => topics,
    queueLength: id =>
      queues.get(stack.all('AWS::SQS::Queue').find(queue => queue.id === id)?.arn ?? '')?.messages().length ?? 0,
    coldStarts: () => [...functions.values()].reduce((sum, { coldStarts }) => sum + coldStarts, 0),
    report: report.read,
    async stop() {
      buses.stop()
      asynchronous.stop()
      // Whoever still works is ended with its instance.
      await Promise.all([
        ...Array.from(functions.values(), each => each.stop()),
        ...pollers.map(poller => poller.stop()),
      ])
      await activity.settled()
      await running.disposeAsync()
    },
  }
}

const maxGatewayBytes = 10 * 1024 * 1024

function notYet(): never {
  throw new Error('the rehearsal is not ready')
}

async function listen(started: AsyncDisposableStack, server: Server, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, loopback, resolve)
  })
  started.defer(
    () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return `http://${loopback}:${(server.address() as AddressInfo).port}`
}

/** Puts a function's code where nothing else is, as Lambda does: what it needs has to be in it. */
async function unzip(spec: FunctionSpec, folder: string): Promise<FunctionSpec> {
  const task = join(folder, spec.name)
  await cp(spec.folder, task, { recursive: true })
  return { ...spec, folder: task }
}
