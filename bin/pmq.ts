import { resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { type Host, type HostOptions, startHost } from './host/host.ts'
import { type HostStore, openDynamo, openFolder } from './host/store.ts'

const program = new Command('pmq').description('PMQ Serverless on one machine')

type StartOptions = { port: number; dir: string; sessionTimeout: number; subEnvironments: boolean }

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
  .addHelpText(
    'after',
    '\nPMQ_DYNAMODB_ENDPOINT keeps everything in that DynamoDB instead (tables pmq-log, pmq-registry).',
  )
  .action(start)

async function start({ port, dir, sessionTimeout, subEnvironments }: StartOptions): Promise<void> {
  const failure = Promise.withResolvers<Error>()
  const opened = await openStore(resolve(dir), failure.resolve)
  const host = await listen(opened, { port, sessionTimeoutMs: sessionTimeout * 1000, subEnvironments })
  console.log(`PMQ Serverless listens on ${host.url}; everything is kept in ${host.place}

Make a topic, a group, and subscribe one to the other:
  curl -X POST ${host.url}/api/admin/topics -d '{"name":"orders"}'
  curl -X POST ${host.url}/api/admin/groups -d '{"name":"billing"}'
  curl -X PUT  ${host.url}/api/admin/groups/billing/subscriptions/orders -d '{}'
Then publish and consume: README.md has a program. Ctrl-C stops the host.`)

  let stopping = false
  const stop = () => {
    if (stopping) return
    stopping = true
    host.stop().then(
      () => console.log(process.exitCode ? 'stopped' : 'stopped; nothing is lost'),
      error => {
        console.error(error)
        process.exitCode = 1
      },
    )
  }
  failure.promise.then(error => {
    console.error(`${error.message}: the host stops, and has to be started again`, error.cause ?? '')
    process.exitCode = 1
    stop()
  })
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
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

async function listen(opened: HostStore, options: HostOptions): Promise<Host> {
  try {
    return await startHost(opened, options)
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE')) throw cause
    throw new Error(`port ${options.port} is in use; choose another with --port, or 0 for any that is free`, { cause })
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
