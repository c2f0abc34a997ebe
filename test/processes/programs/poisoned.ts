import { createClient } from 'pmq-sdk'

/** A consumer whose process ends, in the midst of everything, when it meets a certain body. SIGTERM stops it in order. */
export type PoisonedPlan = {
  url: string
  groupName: string
  topicName: string
  poison: string
  how: 'exit' | 'SIGKILL'
}

/** What it tells: bodies as it begins with them, and how it fares. */
export type PoisonedReport =
  | { started: { body: string; retryCount: number }[] }
  | { stored: { offsets: number; dead: number } }
  | { careful: { deaths: number; isSuspected: boolean } }

const { url, groupName, topicName, poison, how }: PoisonedPlan = JSON.parse(process.argv[2] ?? '')
/** Resolves when the parent has it: what is under way when a process ends is gone. */
const tell = (report: PoisonedReport) => new Promise<void>(resolve => process.send?.(report, () => resolve()))

const client = createClient({
  url,
  onEvent(event) {
    if (event.type === 'failures_stored')
      void tell({ stored: { offsets: event.offsets.length, dead: event.deadOffsets.length } })
    if (event.type === 'careful')
      void tell({ careful: { deaths: event.deaths, isSuspected: event.suspectOffset !== undefined } })
  },
})

const consumer = client.consumer({
  groupName,
  // It is started again in its place, as a pod is.
  instanceId: 'pod-0',
  topics: {
    async [topicName](messages) {
      await tell({ started: messages.map(({ body, retryCount }) => ({ body, retryCount })) })
      if (!messages.some(({ body }) => body === poison)) return
      if (how === 'exit') process.exit(1)
      process.kill(process.pid, 'SIGKILL')
      await new Promise(() => {})
    },
  },
})
process.once('SIGTERM', async () => {
  await client.close()
  process.disconnect()
})
await consumer.start()
