// A consumer that pauses, such as while a database is away, keeps its queues and hands nothing out.
// prints: paused: nothing came
// prints: resumed: a message
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'paused', queues: 1, groupName: 'pausing' })
const done = Promise.withResolvers<void>()
const handled: string[] = []

const client = createClient({ url })
const consumer = client.consumer({
  groupName: 'pausing',
  topics: {
    paused(messages) {
      handled.push(...messages.map(({ body }) => body))
      done.resolve()
    },
  },
})

// #region pause
consumer.pause({ topicName: 'paused' }) // or one queue of it, or with nothing given everything
await consumer.start()
await client.publish('paused', { body: 'a message' })
await sleep(300)
if (handled.length === 0) console.log('paused: nothing came')

consumer.resume({ topicName: 'paused' })
await done.promise
console.log(`resumed: ${handled[0]}`)
// #endregion
await client.close()
