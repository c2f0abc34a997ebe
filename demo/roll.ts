import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { admin, setUp } from './admin.ts'
import type { Handled } from './consumer.ts'
import { endProcess, openService, startProcess } from './processes.ts'
import { createTally } from './tally.ts'

/**
 * A rolling restart under load: four consumers over sixteen queues are stopped one by one, and each is replaced. A clean
 * change loses nothing and hands nothing out twice, and queues that do not move go on. Exit code 0 only if that is so.
 */
const topicName = 'steady'
const groupName = 'rolled'
const queues = 16
const consumers = 4
/** A queue that stays with its consumer may rest this long between two messages. */
const greatestPauseMs = 1_000
const patienceMs = 30_000

const asJson = process.argv.includes('--json')
const say = (text: string) => {
  if (!asJson) console.log(text)
}
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

const service = await openService(30)
const tally = createTally()
/** Per queue, who handled last, and when. */
const last = new Map<number, { consumer: string; atMs: number }>()
let longestPauseMs = 0
let changesOfOwner = 0

function observe(consumer: string, handled: Handled[]): void {
  tally.count(consumer, handled)
  for (const { queueId, atMs } of handled) {
    const before = last.get(queueId)
    if (before?.consumer === consumer) longestPauseMs = Math.max(longestPauseMs, atMs - before.atMs)
    else if (before) changesOfOwner++
    last.set(queueId, { consumer, atMs })
  }
}

function startConsumer(name: string): ChildProcess {
  const child = startProcess('consumer.ts', [service.url, groupName, topicName])
  child.on('message', (handled: Handled[]) => observe(name, handled))
  return child
}

type GroupView = { members: unknown[]; queues: { consumerName?: string }[] }

/** Waits until every queue has an owner, and as many different ones as there should be. */
async function settled(members: number): Promise<void> {
  for (const startedAt = Date.now(); Date.now() - startedAt < patienceMs; await pause(50)) {
    const group = (await admin(service.url, 'GET', `/groups/${groupName}`)) as GroupView
    const owners = group.queues.map(queue => queue.consumerName)
    if (group.members.length === members && !owners.includes(undefined) && new Set(owners).size === members) return
  }
  throw new Error(`the group did not come to rest with ${members} members`)
}

await setUp(service.url, topicName, queues, groupName, { threadSize: 4, consumerBatchSize: 10, maxPullTimeSeconds: 1 })
const running: ChildProcess[] = []
for (let n = 1; n <= consumers; n++) running.push(startConsumer(`consumer-${n}`))
await settled(consumers)
const publisher = startProcess('pacer.ts', [service.url, topicName])
await pause(1_000)

const startedAt = performance.now()
for (let n = 1; n <= consumers; n++) {
  const old = running.shift()
  if (!old) break
  say(`consumer-${n} is stopped, consumer-${n + consumers} takes its place`)
  await endProcess(old, 'SIGTERM')
  running.push(startConsumer(`consumer-${n + consumers}`))
  await settled(consumers)
  await pause(500)
}
const seconds = (performance.now() - startedAt) / 1000

publisher.send('end')
const [{ published }] = (await once(publisher, 'message')) as [{ published: number }]
for (const since = Date.now(); tally.distinct < published && Date.now() - since < patienceMs; ) await pause(20)
await Promise.all(running.map(child => endProcess(child, 'SIGTERM')))
await endProcess(publisher)
await service.stop()

const result = {
  published,
  handled: tally.distinct,
  lost: published - tally.distinct,
  duplicates: tally.duplicates,
  seconds: Math.round(seconds * 10) / 10,
  changesOfOwner,
  longestPauseOfQueuesThatStayMs: longestPauseMs,
  p50Ms: tally.latencyMs(0.5),
  p99Ms: tally.latencyMs(0.99),
}
if (asJson) console.log(JSON.stringify(result))
else console.table(result)
const isRight = result.lost === 0 && result.duplicates === 0 && longestPauseMs <= greatestPauseMs
process.exitCode = isRight ? 0 : 1
