import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { endProcess } from '../../demo/processes.ts'
import { median } from '../measure.ts'
import type { Act } from './acts.ts'
import type { Order, Reading, Task } from './contender.ts'
import type { Addresses } from './serve.ts'

/**
 * What a message costs in the process of its publisher or consumer: CPU microseconds with our SDK, and beside it with the
 * AWS SDK and sqs-consumer and with KafkaJS. Each client at each act is a process of its own, warmed up once; in each
 * round each of them works alone for a moment. The servers are stand-ins in a process apart, and answer at once.
 */
const rounds = Number(process.argv[2] ?? 5)
const warmUp: Order = { settleMs: 0, measureMs: 2_500 }
/** What was fetched ahead while it rested is used up when counting begins. */
const round: Order = { settleMs: 300, measureMs: 700 }
const longestMs = 170_000

const publish = (perCall: number): Act => ({ verb: 'publish', perCall })
const consume = (perCall: number, by?: Act['by']): Act => ({ verb: 'consume', perCall, ...(by && { by }) })

/** The row of the table, the act, and who can do it. KafkaJS hands out whole fetches, SQS ten messages at most. */
const plan: [string, Act, Task['client'][]][] = [
  ['publish one at a time, 32 callers', publish(1), ['pmq', 'sqs', 'kafka']],
  ['publish 10 at a time, 8 callers', publish(10), ['pmq', 'sqs', 'kafka']],
  ['publish 100 at a time, 8 callers', publish(100), ['pmq', 'kafka']],
  ['consume, 1 a call', consume(1), ['pmq', 'sqs', 'kafka']],
  ['consume, 10 a call', consume(10), ['pmq', 'sqs']],
  ['consume, 100 a call (KafkaJS: a fetch)', consume(100), ['pmq', 'kafka']],
  ['consume, 10 a call, in order of keys', consume(10, 'key'), ['pmq']],
  ['consume, 10 a call, half filtered by tag', consume(10, 'tag'), ['pmq']],
]

type Contender = { row: string; client: Task['client']; child: ChildProcess; micros: number[] }

async function work({ row, client, child }: Contender, order: Order): Promise<number> {
  const answered = once(child, 'message') as Promise<[Reading]>
  const died = once(child, 'exit').then(([code]) => {
    throw new Error(`${client} at "${row}" ended with code ${code}`)
  })
  child.send(order)
  const [{ cpuMicros, messages }] = await Promise.race([answered, died])
  if (messages === 0) throw new Error(`${client} at "${row}" did nothing`)
  return cpuMicros / messages
}

const startedAtMs = performance.now()
const servers = fork(new URL('serve.ts', import.meta.url))
const [addresses] = (await once(servers, 'message')) as [Addresses]
const contenders: Contender[] = []
for (const [row, act, clients] of plan) {
  for (const client of clients) {
    const task: Task = { client, act, address: addresses[client] }
    // KafkaJS 2.2.4 asks for timers in the past, and each of its processes would be told so.
    const execArgv = ['--disable-warning=TimeoutNegativeWarning']
    const child = fork(new URL('contender.ts', import.meta.url), [JSON.stringify(task)], { execArgv })
    const contender = { row, client, child, micros: [] }
    contenders.push(contender)
    await work(contender, warmUp)
  }
}
let played = 0
while (played < rounds && performance.now() - startedAtMs < longestMs) {
  for (const contender of contenders) contender.micros.push(await work(contender, round))
  played++
}
for (const { child } of contenders) {
  child.disconnect()
  await Promise.race([endProcess(child), once(AbortSignal.timeout(2_000), 'abort')])
  await endProcess(child, 'SIGKILL')
}
servers.disconnect()

console.log(
  `CPU microseconds a message, bodies of 100 bytes: median of ${played} rounds (least to most), and times ours`,
)
console.table(Object.fromEntries(plan.map(([row]) => [row, describe(row)])))

function describe(row: string): Record<string, string> {
  const of = (client: Task['client']) => contenders.find(one => one.row === row && one.client === client)?.micros
  const ours = median(of('pmq') ?? [])
  const show = (micros: number[] | undefined) =>
    micros ? `${short(median(micros))} (${short(Math.min(...micros))} to ${short(Math.max(...micros))})` : ''
  const times = (micros: number[] | undefined) => (micros ? `${short(median(micros) / ours)} ×` : '')
  const [sqs, kafka] = [of('sqs'), of('kafka')]
  return {
    'pmq-sdk': show(of('pmq')),
    'SQS (AWS SDK, sqs-consumer)': show(sqs),
    ' ': times(sqs),
    KafkaJS: show(kafka),
    '  ': times(kafka),
  }
}

function short(value: number): string {
  return value < 10 ? value.toFixed(1) : String(Math.round(value))
}
