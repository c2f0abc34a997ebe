// One callback for everything worth a log line or a metric; here for a handler that fails once.
// prints: assigned: queue … of watched
// prints: handler_failed: offsets 1 to 1, again in … ms
// prints: done at the second try
// prints: revoked: committed up to offset 1
import { type ClientEvent, createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'watched', queues: 1, groupName: 'watchers', settings: { retryInPlace: true } })
const done = Promise.withResolvers<void>()
let calls = 0

// #region events
function onEvent(event: ClientEvent): void {
  if (event.type === 'request_failed') console.error(`${event.operation}: ${event.error.code}`)
  if (event.type === 'handler_failed')
    console.log(`handler_failed: offsets ${event.firstOffset} to ${event.lastOffset}, again in ${event.retryInMs} ms`)
  if (event.type === 'assigned') console.log(`assigned: queue ${event.queueId} of ${event.topicName}`)
  if (event.type === 'revoked') console.log(`revoked: committed up to offset ${event.offset}`)
}

const client = createClient({ url, onEvent })
// #endregion
const consumer = client.consumer({
  groupName: 'watchers',
  topics: {
    watched() {
      if (++calls === 1) throw new Error('the database is away')
      console.log('done at the second try')
      done.resolve()
    },
  },
})
await consumer.start()
await client.publish('watched', { body: 'a message' })
await done.promise
await client.close()
