// Messages of one key are handed out in the order in which they were published, whoever else publishes.
// prints: ann: 1 2 3 4 5
// prints: bob: 1 2 3 4 5
// prints: each key in one queue
import { createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'keyed', queues: 4, groupName: 'in-order' })

const seen = new Map<string, { numbers: string[]; queueIds: Set<number> }>()
const done = Promise.withResolvers<void>()

const client = createClient({ url })
const consumer = client.consumer({
  groupName: 'in-order',
  topics: {
    keyed(messages) {
      for (const { key = '', queueId, body } of messages) {
        const entry = seen.get(key) ?? { numbers: [], queueIds: new Set() }
        entry.numbers.push(body)
        entry.queueIds.add(queueId)
        seen.set(key, entry)
      }
      if ([...seen.values()].flatMap(({ numbers }) => numbers).length === 10) done.resolve()
    },
  },
})
await consumer.start()

// #region keys
// Not awaited one by one: the order of the calls counts.
const publishing = ['1', '2', '3', '4', '5'].flatMap(body =>
  ['ann', 'bob'].map(key => client.publish('keyed', { key, body })),
)
await Promise.all(publishing)
// #endregion
await done.promise

for (const key of ['ann', 'bob']) console.log(`${key}: ${seen.get(key)?.numbers.join(' ')}`)
if ([...seen.values()].every(({ queueIds }) => queueIds.size === 1)) console.log('each key in one queue')

await client.close()
