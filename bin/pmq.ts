import { resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { startHost } from './host/host.ts'
import { openDynamo, openFolder } from './host/store.ts'

const program = new Command('pmq').description('PMQ Serverless on one machine')

type StartOptions = { port: number; dir: string; sessionTimeout: number }

program
  .command('start')
  .description('run the whole service on this machine, for this machine alone (127.0.0.1, no keys)')
  .option('--port <number>', 'port to listen on; 0 takes any that is free', wholeNumber, 8080)
  .option('--dir <folder>', 'folder that keeps everything', '.pmq')
  .option('--session-timeout <seconds>', 'give up a consumer after this long without a heartbeat', wholeNumber, 30)
  .addHelpText(
    'after',
    '\nPMQ_DYNAMODB_ENDPOINT keeps everything in that DynamoDB instead (tables pmq-log, pmq-registry).',
  )
  .action(start)

async function start({ port, dir, sessionTimeout }: StartOptions): Promise<void> {
  const endpoint = process.env.PMQ_DYNAMODB_ENDPOINT
  const opened = endpoint ? await openDynamo(endpoint, 'pmq', process.env) : await openFolder(resolve(dir))
  const host = await startHost(opened, { port, sessionTimeoutMs: sessionTimeout * 1000 })
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
      () => console.log('stopped; nothing is lost'),
      error => {
        console.error(error)
        process.exitCode = 1
      },
    )
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError(`${text} is not a whole number`)
  return Number(text)
}

program.parseAsync().catch(error => {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
})
