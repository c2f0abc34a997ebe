// Subscriptions from PMQ's messageQueue.xml, whose handlers are found by name.
// prints: billing-xml handles orders-xml
// prints: handled an order
// prints: an error names the line: …:4: …
import { createClient, type MessageHandler } from 'pmq-sdk'
import { loadSubscriptions } from 'pmq-sdk/xml'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'orders-xml', queues: 1, groupName: 'billing-xml' })
const done = Promise.withResolvers<void>()

const xml = `
<messageQueue>
  <consumer groupName="billing-xml">
    <topics><topic name="orders-xml" receiverType="com.example.OrdersSubscriber"/></topics>
  </consumer>
</messageQueue>`

// #region xml
const handleOrders: MessageHandler = messages => {
  for (const { body } of messages) console.log(`handled ${body}`)
  done.resolve()
}

const client = createClient({ url })
const handlers = { 'com.example.OrdersSubscriber': handleOrders }
for (const subscription of await loadSubscriptions(xml, { handlers })) {
  // or the path of the file
  console.log(`${subscription.groupName} handles ${Object.keys(subscription.topics)}`)
  await client.consumer(subscription).start()
}
// #endregion
await client.publish('orders-xml', { body: 'an order' })
await done.promise
await client.close()

const broken = await loadSubscriptions(xml.replace('receiverType', 'reciverType'), { handlers }).catch(error => error)
console.log(`an error names the line: ${broken.message}`)
