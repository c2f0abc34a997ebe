import { once } from 'node:events'
import { startProcess } from '../../demo/processes.ts'
import type { EventOf, EventType, HistoryEvent } from '../checker/history.ts'
import { now } from './now.ts'
import type { BlockOrder, ConsumerPlan } from './programs/consumer.ts'
import type { PublisherPlan } from './programs/publisher.ts'
import type { Report, Told } from './programs/reporter.ts'

/** A program in a process of its own, and all that it has reported. */
export type Child = {
  readonly name: string
  readonly history: readonly HistoryEvent[]
  /** The events of its history that are of one type, oldest first. */
  events<T extends EventType>(type: T): EventOf<T>[]
  /** What its SDK told it, oldest first. */
  readonly told: readonly Told[]
  /** What must not be. */
  readonly defects: readonly string[]
  /** How often it has begun to block. */
  readonly blocks: number
  send(order: BlockOrder | 'end'): void
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Asks it to end, or ends it; resolves when it is gone, and all that it had reported is here. */
  end(how: 'SIGTERM' | 'SIGKILL' | 'end'): Promise<void>
}

export function startChild(program: 'consumer', plan: ConsumerPlan): Child
export function startChild(program: 'publisher', plan: PublisherPlan): Child
export function startChild(program: string, plan: ConsumerPlan | PublisherPlan): Child {
  const { name } = plan
  const file = new URL(`./programs/${program}.ts`, import.meta.url).href
  const process = startProcess(file, [JSON.stringify(plan)])
  const history: HistoryEvent[] = []
  const told: Told[] = []
  const defects: string[] = []
  let blocks = 0
  let isKilled = false

  process.on('message', (reports: Report[]) => {
    for (const report of reports) {
      if ('event' in report) history.push(report.event)
      else if ('told' in report) told.push(report.told)
      else if ('defect' in report) defects.push(report.defect)
      else blocks++
    }
  })
  // Not `exit`, behind which there may still be reports in the channel.
  const gone = once(process, 'close').then(([code]) => {
    if (isKilled) history.push({ seq: history.length, at: now(), client: name, type: 'crashed' })
    else if (code !== 0) defects.push(`${name} ended with code ${code}`)
  })

  return {
    name,
    history,
    told,
    defects,
    events: <T extends EventType>(type: T) => history.filter((event): event is EventOf<T> => event.type === type),
    get blocks() {
      return blocks
    },
    send: order => void process.send(order),
    signal: signal => void process.kill(signal),
    end(how) {
      isKilled ||= how === 'SIGKILL'
      if (how !== 'end') process.kill(how)
      else if (process.connected) process.send(how)
      return gone
    },
  }
}
