import { type Client, type ClientEvent, createClient } from 'pmq-sdk'
import type { History } from '../../test/checker/history.ts'
import { createRecorder, recordConsumer, recordProducer } from '../../test/simulation/programs/recorder.ts'
import { openWay } from './way.ts'

/** What all programs of the soak share. */
export type Setting = {
  url: string
  topicName: string
  history: History
  onDefect(defect: string): void
  onEvent(event: ClientEvent): void
}

/** One client, with all that it does recorded under its name; for one consumer at a time. */
export type Program = Setting & {
  name: string
  client: Client
  record: { consumer: ReturnType<typeof recordConsumer>; producer: ReturnType<typeof recordProducer> }
  /** A value that nobody has published before. */
  nextValue(): string
  /** Ends it in order. */
  close(): Promise<void>
  /** Ends it without a word to the service. */
  crash(): Promise<void>
}

/** @param faults the share of its requests that something happens to */
export function startProgram(setting: Setting, name: string, faults: number): Program {
  const way = openWay(setting.url, faults)
  const recorder = createRecorder(setting.history, new Map(), setting.onDefect)
  const producer = recordProducer(recorder, name, way.transport)
  const consumer = recordConsumer(recorder, name, producer.transport)
  const client = createClient({
    transport: consumer.transport,
    requestTimeoutMs,
    onEvent(event) {
      producer.onEvent(event)
      setting.onEvent(event)
    },
  })
  let values = 0

  async function close(timeoutMs?: number) {
    await client.close({ timeoutMs })
    way.close()
  }

  return {
    ...setting,
    name,
    client,
    record: { consumer, producer },
    nextValue: () => `${name}/${++values}`,
    close: () => close(),
    async crash() {
      way.cut()
      await close(abortAfterMs)
    },
  }
}

/** How long publishes that can get no answer are waited for. */
const abortAfterMs = 300
/** Short, so that what hangs is part of the churn. */
const requestTimeoutMs = 2_000
