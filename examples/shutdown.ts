// Ends in order at SIGTERM, as a container is told to: what runs is finished and committed, and nothing is handed out twice.
// prints: at work
// prints: finished what ran
// prints: closed
// ends: at SIGTERM, once it prints: at work
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'long-jobs', queues: 1, groupName: 'workers' })

// #region shutdown
const client = createClient({ url })
const consumer = client.consumer({
  groupName: 'workers',
  stopTimeoutMs: 10_000, // then `signal` aborts, and the messages go to another consumer
  topics: {
    async 'long-jobs'(_messages, { signal }) {
      console.log('at work')
      await sleep(500, undefined, { signal })
      console.log('finished what ran')
    },
  },
})
await consumer.start()

process.once('SIGTERM', async () => {
  await client.close() // stops all consumers, sends what is published, ends the connections
  console.log('closed')
})
// #endregion

await client.publish('long-jobs', { body: 'a job' })
