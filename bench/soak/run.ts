import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { GroupView } from '../../core/protocol/admin.ts'
import { admin, setUp } from '../../demo/admin.ts'
import { endProcess, startHostProcess } from '../../demo/processes.ts'
import { createHistory } from '../../test/checker/history.ts'
import { mergeHistories } from '../../test/checker/merge.ts'
import { now } from '../../test/processes/now.ts'
import type { ClientPlan, Order, Report } from './client.ts'
import { operate } from './operator.ts'
import { replay } from './remote-history.ts'
import { countHandles, type Sample } from './sample.ts'
import { judge } from './verdict.ts'

/**
 * The SDK under churn for minutes: a host, and one process in which consumers and producers come, go and crash while its
 * heap is watched. Ends with code 1 if the checker of histories finds a promise broken, if the heap grows, if the process
 * was warned of anything (listeners left behind), or if something keeps it alive when all clients are closed.
 */
const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    'max-kb-per-minute': { type: 'string', default: '20' },
  },
})
const lastsMs = Number(options.minutes) * 60_000
const warmUpMs = Math.min(120_000, lastsMs / 3)
const sampleEveryMs = Math.min(5_000, lastsMs / 30)
const sessionTimeoutSeconds = 5
const topicName = 'orders'
/** All that happens to `audit` is churn; `billing` has an operator besides, who excuses messages by setting offsets. */
const groupNames = ['audit', 'billing']
const patienceMs = 60_000

const folder = await mkdtemp(join(tmpdir(), 'pmq-soak-'))
const host = await startHostProcess(folder, sessionTimeoutSeconds)
const { url } = host
// In place: the history says of a failed message that it comes again in its own queue.
const settings = { threadSize: 4, consumerBatchSize: 5, maxPullTimeSeconds: 1, retryInPlace: true, retryCount: 100 }
await setUp(url, topicName, 8, 'audit', settings)
await admin(url, 'POST', '/groups', { name: 'billing' })
await admin(url, 'PUT', `/groups/billing/subscriptions/${topicName}`, settings)

let recordedAtMs = 0
const seen = createHistory(() => recordedAtMs)
const done = createHistory(now)
const samples: Sample[] = []
const warnings: string[] = []
const defects: string[] = []
let tallies: Record<string, number> = {}
const calm = Promise.withResolvers<void>()

const plan: ClientPlan = { url, topicName, groupNames, sampleEveryMs }
const client = fork(new URL('client.ts', import.meta.url), [JSON.stringify(plan)], { execArgv: ['--expose-gc'] })
const gone = once(client, 'exit')
client.on('message', (report: Report) => {
  if ('entries' in report) {
    for (const entry of report.entries) {
      recordedAtMs = entry.atMs
      replay(seen, entry)
    }
  } else if ('sample' in report) samples.push(report.sample)
  else if ('warning' in report) warnings.push(report.warning)
  else if ('defect' in report) defects.push(report.defect)
  else if ('state' in report) calm.resolve()
  else tallies = { ...report.counts, ...report.events }
})
const tell = (order: Order) => client.connected && client.send(order)

const operating = new AbortController()
const operated = operate({ url, topicName, groupName: 'billing', history: done, signal: operating.signal })
const progress = setInterval(() => {
  const last = samples.at(-1)
  if (!last) return
  const [minutes, megabytes] = [last.atMs / 60_000, last.objectBytes / 2 ** 20]
  console.log(`${minutes.toFixed(1)} min: objects ${megabytes.toFixed(2)} MB, ${countHandles(last)} handles`)
}, 60_000)
await Promise.race([sleep(lastsMs), gone])
clearInterval(progress)
operating.abort()
const operations = await operated
const underChurn = samples.filter(({ atMs }) => atMs >= warmUpMs)
tell('calm')
await Promise.race([calm.promise, gone])
await drain()
for (const group of groupNames) done.drained('operator', { group })
tell('end')
const ended = await Promise.race([gone, sleep(patienceMs, undefined, { ref: false })])
if (!ended) {
  defects.push('something keeps the process alive, though its clients are closed')
  client.kill('SIGKILL')
} else if (ended[0] !== 0) defects.push(`the process ended with ${ended}`)
await endProcess(host.child, 'SIGTERM')
await rm(folder, { recursive: true })

const isGood = judge({
  lastsMs,
  maxKbPerMinute: Number(options['max-kb-per-minute']),
  samples: underChurn,
  lastSample: samples.at(-1),
  events: mergeHistories([seen.events, done.events]),
  warnings,
  defects,
  tallies: { ...operations, ...tallies },
})
process.exitCode = isGood ? 0 : 1

/** Until all is committed; in vain where something is lost, which is for the checker to say. */
async function drain() {
  for (const endsAtMs = performance.now() + patienceMs; performance.now() < endsAtMs; await sleep(200)) {
    const groups = await Promise.all(groupNames.map(name => admin(url, 'GET', `/groups/${name}`)))
    if ((groups as GroupView[]).every(({ queues }) => queues.every(({ lag }) => lag === 0))) return
  }
}
