import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientEvent } from 'pmq-sdk'
import { now } from '../../test/processes/now.ts'
import { startChurn } from './churn.ts'
import { createRemoteHistory, type Entry } from './remote-history.ts'
import { type Sample, takeSample } from './sample.ts'

/** The process whose heap is watched. It keeps nothing of what it reports. */
export type ClientPlan = { url: string; topicName: string; groupNames: string[]; sampleEveryMs: number }

/** What it is told: to let it become calm, and to end. */
export type Order = 'calm' | 'end'

export type Report =
  | { entries: Entry[] }
  | { sample: Sample }
  | { state: 'calm' }
  | { warning: string }
  | { defect: string }
  | { events: Record<string, number>; counts: Record<string, number> }

const plan: ClientPlan = JSON.parse(process.argv[2] ?? '')
const events: Record<string, number> = {}
let entries: Entry[] = []

function report(one: Report) {
  process.send?.(one)
}

function send(entry: Entry) {
  if (entries.push(entry) > 1) return
  setImmediate(() => {
    const gathered = entries
    entries = []
    report({ entries: gathered })
  })
}

process.on('warning', ({ name, message }) => report({ warning: `${name}: ${message}` }))
const onDefect = (defect: string) => report({ defect })
process.on('uncaughtException', error => onDefect(`nobody caught ${error.stack ?? error}`))
const onEvent = ({ type }: ClientEvent) => {
  events[type] = (events[type] ?? 0) + 1
}
const churn = startChurn({ ...plan, history: createRemoteHistory(now, send), onDefect, onEvent }, plan.groupNames)
const sampling = setInterval(() => report({ sample: takeSample() }), plan.sampleEveryMs)

process.on('message', async (order: Order) => {
  if (order === 'calm') {
    await churn.calm()
    return report({ state: 'calm' })
  }
  await churn.end()
  clearInterval(sampling)
  // Closed sockets are gone some turns later.
  await sleep(100)
  setImmediate(() => {
    report({ sample: takeSample() })
    report({ events, counts: churn.counts })
    process.disconnect?.()
  })
})
