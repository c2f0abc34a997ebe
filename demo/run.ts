import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setUp } from './admin.ts'
import type { Handled } from './consumer.ts'
import { endProcess, openService, startProcess } from './processes.ts'
import { readRecords } from './records.ts'
import { createTally } from './tally.ts'

/**
 * The main job on real data, with real processes: a host, a topic of 8 queues, one publisher, and a group of three
 * consumers of which one is killed half-way, when another joins. Ends when every record is handled. Exit code 0 only if
 * none is lost; records that the killed consumer had in hand may be handled twice. `--url` runs it against another service.
 */
const topicName = 'records'
const groupName = 'readers'
const queues = 8
/** Short, so that the queues of the killed consumer do not wait for half a minute, as they do where it is not ours to say. */
const sessionTimeoutSeconds = 4
/** Nothing handled for this long means that something is lost. */
const patienceMs = 90_000
/** The consumer that is killed. */
const victim = 'consumer-1'

const asJson = process.argv.includes('--json')
const say = (text: string) => {
  if (!asJson) console.log(text)
}

const records = await readRecords()
const service = await openService(sessionTimeoutSeconds)
const consumers = new Map<string, ChildProcess>()
const tally = createTally()
let progressAt = Date.now()
let isHalfway = false

function addConsumer(name: string): void {
  const child = startProcess('consumer.ts', [service.url, groupName, topicName])
  consumers.set(name, child)
  child.on('message', (handled: Handled[]) => {
    tally.count(name, handled)
    progressAt = Date.now()
    if (!isHalfway && tally.distinct >= records.length / 2) changeConsumers()
  })
}

/** Kills one of the consumers without a warning, and lets another join. */
function changeConsumers(): void {
  isHalfway = true
  say(`half of the records are handled: ${victim} is killed (-9), consumer-4 joins`)
  consumers.get(victim)?.kill('SIGKILL')
  addConsumer('consumer-4')
}

async function everythingHandled(published: Promise<number>): Promise<number> {
  const total = await published
  while (tally.distinct < total && Date.now() - progressAt < patienceMs) {
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  return total
}

say(`${records.length} records: films, and countries in many languages; service on ${service.url}`)
await setUp(service.url, topicName, queues, groupName, { threadSize: 4, consumerBatchSize: 10, maxPullTimeSeconds: 1 })
for (const name of ['consumer-1', 'consumer-2', 'consumer-3']) addConsumer(name)
const startedAt = performance.now()
const publisher = startProcess('publisher.ts', [service.url, topicName])
const published = once(publisher, 'message').then(([message]) => (message as { published: number }).published)
const failed = once(publisher, 'exit').then(([code]) => {
  if (code !== 0) throw new Error(`the publisher ended with code ${code}`)
  return published
})
const total = await everythingHandled(Promise.race([published, failed]))
const seconds = (performance.now() - startedAt) / 1000

await Promise.all([...consumers.values()].map(child => endProcess(child, 'SIGTERM')))
await endProcess(publisher)
await service.stop()

const result = {
  published: total,
  handled: tally.distinct,
  lost: total - tally.distinct,
  duplicates: tally.duplicates,
  seconds: Math.round(seconds * 10) / 10,
  messagesPerSecond: Math.round(total / seconds),
  p50Ms: tally.latencyMs(0.5),
  p99Ms: tally.latencyMs(0.99),
  consumers: Object.fromEntries(tally.perConsumer().map(({ consumer, handled }) => [consumer, handled])),
}
if (asJson) {
  console.log(JSON.stringify(result))
} else {
  const { consumers: perConsumer, ...figures } = result
  console.table({ ...figures, ...perConsumer })
}
process.exitCode = result.lost === 0 && total === records.length ? 0 : 1
