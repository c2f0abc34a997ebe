import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, type NewMessage, type Producer, type ProducerOptions, PublishError } from 'pmq-sdk'
import { createRecorder, recordProducer } from '../../simulation/programs/recorder.ts'
import { createReporter } from './reporter.ts'

/**
 * Publishes at a steady pace until it is told to end, and then knows what became of each message. Two thirds of the
 * messages have a key. Where there are several producers they take turns.
 */
export type PublisherPlan = {
  name: string
  url: string
  topicName: string
  producers: ProducerOptions[]
  requestTimeoutMs: number
  messagesPerTick: number
}

const tickMs = 10
const keys = 32

const plan: PublisherPlan = JSON.parse(process.argv[2] ?? '')
const { name, topicName } = plan
const reporter = createReporter()
const { history, onDefect } = reporter
const { call, close } = reporter.connect(plan.url)
const record = recordProducer(createRecorder(history, new Map(), onDefect), name, call)
const client = createClient({
  transport: record.transport,
  requestTimeoutMs: plan.requestTimeoutMs,
  onEvent(event) {
    record.onEvent(event)
    reporter.onEvent(event)
  },
})
const producers = plan.producers.map(options => client.producer(options))

async function publish(producer: Producer, message: NewMessage): Promise<void> {
  try {
    const { queueId, offset } = await producer.publish(topicName, message)
    record.stored(message.body, queueId, offset)
  } catch (error) {
    if (!(error instanceof PublishError)) throw error
    if (error.outcome === 'not_stored') record.notStored(message.body)
  }
}

let isEnding = false
process.once('message', () => {
  isEnding = true
})
const published: Promise<void>[] = []
while (!isEnding) {
  for (let i = 0; i < plan.messagesPerTick; i++) {
    const n = published.length
    const body = `${name}/${n}`
    const key = n % 3 === 0 ? undefined : `key-${n % keys}`
    const producer = producers[n % producers.length]
    if (producer) published.push(publish(producer, { body, key, bizId: body }))
  }
  await sleep(tickMs)
}
await Promise.all(published)
await client.close()
close()
await reporter.end()
