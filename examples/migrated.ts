// The job of docs/migrating.md, which is done there with other clients too: settle payments, those of one payer in order.
// prints: settled ann: 12.50
// prints: settled ann: 7.00
import { createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'payments', groupName: 'billing', settings: { consumerBatchSize: 10 } })
const done = Promise.withResolvers<void>()

async function settle(payer: string, amount: string): Promise<void> {
  console.log(`settled ${payer}: ${amount}`)
  if (amount === '7.00') done.resolve()
}

// #region program
const client = createClient({ url }) // `onEvent` hears of failures and of what is missing; without it they are warnings
const consumer = client.consumer({
  groupName: 'billing',
  ordering: 'key', // those of one payer one after the other, others beside
  topics: {
    async payments(messages) {
      for (const { key = '', body } of messages) await settle(key, body)
    },
  },
})
await consumer.start()
process.once('SIGTERM', () => client.close())

await client.publish('payments', { key: 'ann', body: '12.50' })
await client.publish('payments', { key: 'ann', body: '7.00' })
// #endregion

await done.promise
await client.close()
