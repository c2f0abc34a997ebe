import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, createClient } from 'pmq-sdk'
import { setUp } from '../demo/admin.ts'
import { endProcess, startHostProcess } from '../demo/processes.ts'
import { type Figure, inParallel, measure, printFigures } from './measure.ts'

/**
 * How fast one machine is, client and host together, through HTTP and with an fsync before each answer: single messages
 * with 32 in flight, batches of 100, and what a group consumes with acknowledgement. Medians of some rounds.
 */
const rounds = Number(process.argv[2] ?? 3)
const sizes = [100, 1024]
const singles = 100_000
const batches = 2_000
const batchSize = 100
const queues = 8

const folder = await mkdtemp(join(tmpdir(), 'pmq-bench-'))
const host = await startHostProcess(folder, 30)
await using client = createClient({ url: host.url })

/** Bodies of letters that compress about as text does, each its own. */
function bodyOf(size: number, n: number): string {
  const words = ['order', 'paid', 'customer', 'delivery', 'amount', 'invoice', 'euro', 'street', 'number', 'item']
  let body = `${n}`
  for (let i = 0; body.length < size; i++) body += ` ${words[(n * 7 + i * 3 + ((n >> 3) ^ i)) % words.length]}`
  return body.slice(0, size)
}

async function publishSingles(topicName: string, size: number): Promise<number> {
  let n = 0
  return measure(singles, () => inParallel(singles, 32, () => client.publish(topicName, { body: bodyOf(size, n++) })))
}

async function publishBatches(topicName: string, size: number): Promise<number> {
  const batch = Array.from({ length: batchSize }, (_, i) => ({ body: bodyOf(size, i) }))
  return measure(batches * batchSize, () => inParallel(batches, 8, () => client.publish(topicName, batch)))
}

async function consume(consuming: Client, topicName: string, groupName: string, messages: number): Promise<number> {
  let handled = 0
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const consumer = consuming.consumer({
    groupName,
    topics: {
      [topicName](received) {
        handled += received.length
        if (handled >= messages) resolve()
      },
    },
  })
  return measure(messages, async () => {
    await consumer.start()
    await done
    await consumer.stop()
  })
}

const figures = new Map<string, Figure>()
const record = (name: string, perSecond: number) => {
  const figure = figures.get(name) ?? { name, perSecond: [] }
  figure.perSecond.push(perSecond)
  figures.set(name, figure)
}

for (let round = 0; round < rounds; round++) {
  for (const size of sizes) {
    const topicName = `bench-${round}-${size}`
    const groupName = `bench-group-${round}-${size}`
    await setUp(host.url, topicName, queues, groupName, { consumerBatchSize: 100 })
    record(`publish, single, 32 in flight, ${size} B`, await publishSingles(topicName, size))
    record(`publish, batches of ${batchSize}, ${size} B`, await publishBatches(topicName, size))
    record(`consume, ${size} B`, await consume(client, topicName, groupName, singles + batches * batchSize))
  }
}
await client.close()
await endProcess(host.child, 'SIGTERM')
await rm(folder, { recursive: true })
printFigures([...figures.values()])
