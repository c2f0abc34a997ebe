/**
 * What a user's program does with the package. It is copied into a project that has nothing else, type-checked there, and
 * run there by several versions of Node.
 */
import { type ClientEvent, createClient, type Message, PublishError, type PublishResult } from 'pmq-sdk'

const [, , topicName = 'orders', groupName = 'billing'] = process.argv
const events: ClientEvent['type'][] = []
await using client = createClient({ url: process.env.PMQ_URL, onEvent: event => events.push(event.type) })
const handled: Message[] = []
let allHandled: () => void
const done = new Promise<void>(resolve => {
  allHandled = resolve
})
const consumer = client.consumer({
  groupName,
  topics: {
    [topicName](messages, { signal }) {
      signal.throwIfAborted()
      handled.push(...messages)
      if (handled.length >= 3) allHandled()
    },
  },
})
await consumer.start()

const three = ['one', 'two', 'three'].map(body => ({ key: 'same', body }))
const stored: PublishResult[] = await client.publish(topicName, three)
await done
await consumer.stop()
const refusal: unknown = await client.publish('no-such-topic', { body: '' }).catch(error => error)

console.log(handled.map(({ body }) => body).join(' '))
console.log('in one queue:', new Set(stored.map(({ queueId }) => queueId)).size === 1)
console.log('told of the queues:', events.includes('assigned') && events.includes('revoked'))
console.log('refused:', refusal instanceof PublishError && refusal.outcome)
