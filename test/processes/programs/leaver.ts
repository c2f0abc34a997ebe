import { createClient } from 'pmq-sdk'

/** Publishes what nobody awaits, closes, and ends its process in the same moment. Tells how many were stored, and how many not. */
export type LeaverPlan = { url: string; topicName: string; messages: number; timeoutMs?: number }

const { url, topicName, messages, timeoutMs }: LeaverPlan = JSON.parse(process.argv[2] ?? '')
const client = createClient({ url, onEvent: () => {} })
const told = { stored: 0, failed: 0 }
for (let n = 0; n < messages; n++) {
  client.publish(topicName, { body: `${n}`, key: n % 2 === 0 ? `key-${n % 7}` : undefined }).then(
    () => told.stored++,
    () => told.failed++,
  )
}
await client.close({ timeoutMs })
process.send?.(told, () => process.exit())
