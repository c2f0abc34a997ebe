// Functions around publishing and handling: what is the same for all messages stands once.
// prints: handled an order for dev
// prints: done in … ms
import { createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'listened', queues: 1, groupName: 'listeners' })
const done = Promise.withResolvers<void>()

// #region listeners
const client = createClient({
  url,
  listeners: {
    // Gets a copy, which it may change; what it throws makes the publish fail.
    preSend: message => ({ ...message, head: { environment: 'dev', ...message.head } }),
  },
})
const consumer = client.consumer({
  groupName: 'listeners',
  listeners: {
    filter: ({ head }) => head.environment === 'dev', // others count as consumed
    preHandle: () => isDatabaseUp(), // false: not now, asked again soon
    postHandle(_messages, _context, { outcome, durationMs }) {
      console.log(`${outcome} in ${Math.round(durationMs)} ms`)
      done.resolve()
    },
  },
  topics: {
    listened(messages) {
      for (const { body, head } of messages) console.log(`handled ${body} for ${head.environment}`)
    },
  },
})
// #endregion
function isDatabaseUp(): boolean {
  return true
}

await consumer.start()
await client.publish('listened', { body: 'another order', head: { environment: 'production' } })
await client.publish('listened', { body: 'an order' })
await done.promise
await client.close()
