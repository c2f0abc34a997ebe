// Publishes one message, several, and one that cannot be stored.
// prints: stored in queue … at offset …
// prints: 3 stored
// prints: invalid_message: not_stored
import { createClient, PublishError } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'published', groupName: 'nobody-yet' })

// #region publish
const client = createClient({ url })

// Resolves when the message is durable. Calls that are made at once travel as one request.
const { queueId, offset } = await client.publish('published', { key: 'customer-7', body: JSON.stringify({ id: 1 }) })
console.log(`stored in queue ${queueId} at offset ${offset}`)
// #endregion

const bodies = ['two', 'three', 'four']
const results = await client.publish(
  'published',
  bodies.map(body => ({ body })),
)
console.log(`${results.length} stored`)

// `outcome` says what is known: `not_stored` can be published again; `unknown` may be stored already.
try {
  await client.publish('published', { body: 'x'.repeat(300_000) })
} catch (error) {
  if (!(error instanceof PublishError)) throw error
  console.log(`${error.code}: ${error.outcome}`)
}

await client.close()
