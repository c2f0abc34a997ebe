import { setTimeout as sleep } from 'node:timers/promises'
import type { Act, Client } from './acts.ts'

/** A process that has one client for one act. It rests until it is told to work, and reports what CPU that took. */
export type Task = { client: 'pmq' | 'sqs' | 'kafka'; act: Act; address: string }

/** Work for so long, and count only what comes after `settleMs`. */
export type Order = { settleMs: number; measureMs: number }

/** `cpuMicros`: of all threads, user and system. */
export type Reading = { cpuMicros: number; messages: number }

const { client, act, address }: Task = JSON.parse(process.argv[2] ?? '')

// Only the one: what others load would be part of its garbage collections.
const clients: Record<Task['client'], () => Promise<Client>> = {
  pmq: async () => (await import('./clients/pmq.ts')).workWithPmq,
  sqs: async () => (await import('./clients/sqs.ts')).workWithSqs,
  kafka: async () => (await import('./clients/kafka.ts')).workWithKafka,
}

const shift = {
  closed: undefined as Promise<void> | undefined,
  messages: 0,
  open: () => {},
  close() {
    const { promise, resolve } = Promise.withResolvers<void>()
    shift.closed = promise
    shift.open = () => {
      shift.closed = undefined
      resolve()
    }
  },
}
shift.close()
const work = await clients[client]()
const end = await work(address, act, shift)

process.on('message', async ({ settleMs, measureMs }: Order) => {
  shift.open()
  await sleep(settleMs)
  const before = shift.messages
  const cpu = process.cpuUsage()
  await sleep(measureMs)
  const { user, system } = process.cpuUsage(cpu)
  const messages = shift.messages - before
  shift.close()
  const reading: Reading = { cpuMicros: user + system, messages }
  process.send?.(reading)
})
process.once('disconnect', () => {
  shift.open()
  void end()
})
