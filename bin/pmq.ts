import { resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { startRehearsal } from '../rehearsal/rehearsal.ts'
import { explainReport } from '../rehearsal/report.ts'
import { startHost } from './host/host.ts'
import { type HostStore, openDynamo, openFolder } from './host/store.ts'

const program = new Command('pmq').description('PMQ Serverless on one machine')

type StartOptions = {
  port: number
  dir: string
  sessionTimeout: number
  subEnvironments: boolean
  allowLocalTargets: boolean
  template?: string
}

/** What is the template's to say where there is one. */
const optionsOfHost = ['dir', 'sessionTimeout', 'subEnvironments', 'allowLocalTargets']

program
  .command('start')
  .description('run the whole service on this machine, for this machine alone (127.0.0.1, no keys)')
  .option('--port <number>', 'port to listen on; 0 takes any that is free', wholeNumber(0, 65_535), 8080)
  .option('--dir <folder>', 'folder that keeps everything', '.pmq')
  .option(
    '--session-timeout <seconds>',
    'give up a consumer after this long without a heartbeat',
    wholeNumber(3, 3_600),
    30,
  )
  .option('--sub-environments', 'give each sub-environment that consumers name a copy of the groups they join', false)
  .option('--allow-local-targets', 'let targets be on this machine and in its networks, by http and at any port', false)
  .option('--template <path>', 'rehearse a synthesized stack (cdk.out, or a template in it) with its policies enforced')
  .addHelpText(
    'after',
    '\nPMQ_DYNAMODB_ENDPOINT keeps everything in that DynamoDB instead (tables pmq-log, pmq-registry).',
  )
  .action(start)

async function start(options: StartOptions, command: Command): Promise<void> {
  if (options.template === undefined) return startOnFolder(options)
  const given = optionsOfHost.filter(name => command.getOptionValueSource(name) === 'cli')
  if (given.length > 0) throw new Error(`--template says itself what ${given.join(' and ')} would; leave it out`)
  await rehearse(options.template, options.port)
}

async function startOnFolder(options: StartOptions): Promise<void> {
  const { port, dir, sessionTimeout, subEnvironments, allowLocalTargets } = options
  const failure = Promise.withResolvers<Error>()
  const opened = await openStore(resolve(dir), failure.resolve)
  const settings = { port, sessionTimeoutMs: sessionTimeout * 1000, subEnvironments, allowLocalTargets }
  const host = await atPort(port, () => startHost(opened, settings))
  console.log(`PMQ Serverless listens on ${host.url}; everything is kept in ${host.place}

Make a topic, a group, and subscribe one to the other:
  curl -X POST ${host.url}/api/admin/topics -d '{"name":"orders"}'
  curl -X POST ${host.url}/api/admin/groups -d '{"name":"billing"}'
  curl -X PUT  ${host.url}/api/admin/groups/billing/subscriptions/orders -d '{}'
Then publish and consume: README.md has a program. Ctrl-C stops the host.`)

  const stop = stopOnSignal(async () => {
    await host.stop()
    console.log(process.exitCode ? 'stopped' : 'stopped; nothing is lost')
  })
  failure.promise.then(error => {
    console.error(`${error.message}: the host stops, and has to be started again`, error.cause ?? '')
    process.exitCode = 1
    stop()
  })
}

async function rehearse(template: string, port: number): Promise<void> {
  const path = resolve(template)
  const onLog = (functionName: string, line: string) => console.log(`${functionName}: ${line}`)
  const rehearsal = await atPort(port, () => startRehearsal(path, { port, onLog })).catch(cause => {
    throw new Error(`${path} (--template) cannot be rehearsed: ${cause.message}`, { cause })
  })
  console.log(`The stack of ${path} is rehearsed on ${rehearsal.url}, in memory.
${rehearsal.signedRoutes} routes ask for an IAM signature on AWS; here every request counts as signed by a user who may call them.
Ctrl-C ends it, and says which calls the policies refused and which grants nothing has used.`)
  stopOnSignal(async () => {
    const report = rehearsal.report()
    await rehearsal.stop()
    console.log(explainReport(report))
    if (report.denied.length > 0 || report.notRehearsed.length > 0) process.exitCode = 1
  })
}

/** Stops at Ctrl-C, or when the answer is called; once. */
function stopOnSignal(stop: () => Promise<void>): () => void {
  let stopping = false
  const stopOnce = () => {
    if (stopping) return
    stopping = true
    stop().catch(error => {
      console.error(error)
      process.exitCode = 1
    })
  }
  process.once('SIGINT', stopOnce)
  process.once('SIGTERM', stopOnce)
  return stopOnce
}

async function openStore(folder: string, onFailure: (error: Error) => void): Promise<HostStore> {
  const endpoint = process.env.PMQ_DYNAMODB_ENDPOINT
  try {
    return endpoint ? await openDynamo(endpoint, 'pmq', process.env) : await openFolder(folder, onFailure)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const place = endpoint ? `the DynamoDB of PMQ_DYNAMODB_ENDPOINT (${endpoint})` : `the folder ${folder} (--dir)`
    throw new Error(`${place} cannot be used: ${reason}`, { cause })
  }
}

async function atPort<T>(port: number, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen()
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE')) throw cause
    throw new Error(`port ${port} is in use; choose another with --port, or 0 for any that is free`, { cause })
  }
}

/** Reads an option that has to be a whole number within these bounds. */
function wholeNumber(least: number, most: number): (text: string) => number {
  return text => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`${text} is not a whole number from ${least} to ${most}`)
  }
}

program.parseAsync().catch(error => {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
})
