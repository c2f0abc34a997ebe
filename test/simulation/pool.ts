import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Finding } from './judge.ts'
import type { Plan } from './plan.ts'

/** What a worker is sent, and what it answers. */
export type Order = { seed: number; changes: Partial<Plan> }
export type Report = {
  seed: number
  findings: Finding[]
  digest: string
  events: number
  /** The process is of no use any more. */
  isLast: boolean
}

export type PoolOptions = {
  from: number
  count: number
  /** Processes to play in. @default one for each core */
  workers?: number
  /** What is other than drawn, in every seed. */
  changes?: Partial<Plan>
  /** A module that the workers load first, and what their environment has more. */
  preload?: string
  env?: Record<string, string>
  /** Sees each report, in no order. True ends the whole. */
  onReport: (report: Report) => boolean | undefined
}

/** A seed takes a tenth of a second; but the machine may have other things to do. */
const patienceMs = 100_000

/** Plays seeds in several processes. Resolves when all are played and the processes are gone. */
export async function playSeeds(options: PoolOptions): Promise<void> {
  const { from, count, workers = availableParallelism(), changes = {}, onReport } = options
  let next = from
  let isOver = false

  async function work() {
    let child = start(options)
    while (!isOver && next < from + count) {
      const report = await play(child, { seed: next++, changes })
      if (onReport(report)) isOver = true
      if (report.isLast) {
        await end(child)
        child = start(options)
      }
    }
    await end(child)
  }
  await Promise.all(Array.from({ length: Math.min(workers, count) }, work))
}

function start({ preload, env }: PoolOptions): ChildProcess {
  const execArgv = preload === undefined ? [] : ['--import', preload]
  return fork(fileURLToPath(new URL('worker.ts', import.meta.url)), { execArgv, env: { ...process.env, ...env } })
}

/** The report of a seed, also of one that ends its worker, or does not end. */
function play(child: ChildProcess, order: Order): Promise<Report> {
  return new Promise(resolve => {
    const settle = (report: Report) => {
      clearTimeout(timer)
      child.off('message', settle)
      child.off('exit', lose)
      resolve(report)
    }
    const lose = () => {
      const text = 'the process that played it has ended, or does not end'
      settle({ seed: order.seed, findings: [{ property: 'defect', text }], digest: '', events: 0, isLast: true })
    }
    const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs)
    child.on('message', settle)
    child.on('exit', lose)
    child.send(order)
  })
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  if (child.connected) child.disconnect()
  await once(child, 'exit')
}
