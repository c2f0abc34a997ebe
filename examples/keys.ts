// Messages of one key are handled one after the other, in the order in which they were published; other keys go on beside.
// prints: ann: 1 2 3 4 5
// prints: bob: 1 2 3 4 5
// prints: each key in one queue
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'keyed', queues: 4, groupName: 'in-order', settings: { threadSize: 4 } })

const seen = new Map<string, { numbers: string[]; queueIds: Set<number> }>()
const done = Promise.withResolvers<void>()

function note(key: string, queueId: number, body: string): void {
  const entry = seen.get(key) ?? { numbers: [], queueIds: new Set() }
  entry.numbers.push(body)
  entry.queueIds.add(queueId)
  seen.set(key, entry)
  if ([...seen.values()].flatMap(({ numbers }) => numbers).length === 10) done.resolve()
}

const client = createClient({ url })
// #region keys
const consumer = client.consumer({
  groupName: 'in-order',
  ordering: 'key', // however many calls run at once
  topics: {
    async keyed(messages) {
      for (const { key = '', queueId, body } of messages) {
        await sleep(Math.random() * 10)
        note(key, queueId, body)
      }
    },
  },
})
// #endregion
await consumer.start()

// Not awaited one by one: the order of the calls counts.
const publishing = ['1', '2', '3', '4', '5'].flatMap(body =>
  ['ann', 'bob'].map(key => client.publish('keyed', { key, body })),
)
await Promise.all(publishing)
await done.promise

for (const key of ['ann', 'bob']) console.log(`${key}: ${seen.get(key)?.numbers.join(' ')}`)
if ([...seen.values()].every(({ queueIds }) => queueIds.size === 1)) console.log('each key in one queue')

await client.close()
