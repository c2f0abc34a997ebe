import { createClient } from 'pmq-sdk'

/** One consumer of the demo: reports each message that it was handed, then lets it count as done. */
const [url = '', groupName = '', topicName = ''] = process.argv.slice(2)

export type Handled = { id: string; queueId: number; latencyMs: number; atMs: number }

const report = (handled: Handled[]) =>
  new Promise<void>((resolve, reject) => {
    process.send?.(handled, (error: Error | null) => (error ? reject(error) : resolve()))
  })

const client = createClient({ url })
const consumer = client.consumer({
  groupName,
  topics: {
    async [topicName](messages) {
      const atMs = Date.now()
      await report(
        messages.map(({ bizId: id, queueId, head }) => ({
          id,
          queueId,
          latencyMs: atMs - Number(head.sentAt),
          atMs,
        })),
      )
    },
  },
})
await consumer.start()
process.once('SIGTERM', async () => {
  await consumer.stop()
  await client.close()
  process.disconnect?.()
})
