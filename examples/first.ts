import { createClient } from 'pmq-sdk'

const url = process.env.PMQ_URL ?? 'http://127.0.0.1:8080'
const admin = (method: string, path: string, body: object) =>
  fetch(`${url}/api/admin${path}`, { method, body: JSON.stringify(body) })
await admin('POST', '/topics', { name: 'orders', queues: 4 })
await admin('POST', '/groups', { name: 'billing' })
await admin('PUT', '/groups/billing/subscriptions/orders', {})

const client = createClient({ url })
const consumer = client.consumer({
  groupName: 'billing',
  topics: {
    orders(messages) {
      for (const { queueId, offset, key, body } of messages) console.log(`${queueId}/${offset} ${key}: ${body}`)
    },
  },
})
await consumer.start()
await Promise.all(['ann', 'bob', 'eve'].map(key => client.publish('orders', { key, body: `an order of ${key}` })))

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await consumer.stop() // handlers end, their progress is committed, the group goes on without us
    await client.close()
  })
}
