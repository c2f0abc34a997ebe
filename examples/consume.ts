// Works through a topic as a group, some messages at a time.
// prints: 5 messages, none twice
// prints: running, and healthy
import { createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'consumed', queues: 2, groupName: 'readers', settings: { consumerBatchSize: 10 } })

const handled = new Set<string>()
const done = Promise.withResolvers<void>()

// #region consume
const client = createClient({ url })
const consumer = client.consumer({
  groupName: 'readers',
  topics: {
    // When it returns, its messages are done; when it throws, they come again a minute later, from the fail topic.
    async consumed(messages, { signal }) {
      for (const { queueId, offset, body } of messages) {
        signal.throwIfAborted()
        await save(`${queueId}/${offset}`, body)
      }
    },
  },
})
await consumer.start()
// #endregion

// Delivery is at least once, so what a handler does has to bear repetition: here, under the same name.
async function save(name: string, _body: string): Promise<void> {
  handled.add(name)
  if (handled.size === 5) done.resolve()
}

await client.publish(
  'consumed',
  Array.from({ length: 5 }, (_, index) => ({ body: `message ${index}` })),
)
await done.promise
console.log(`${handled.size} messages, none twice`)

const { state, health } = consumer.status()
console.log(`${state}, and ${health.isHealthy ? 'healthy' : health.reasons.join(', ')}`)

await client.close()
