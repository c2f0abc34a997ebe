// A handler that gets several messages and fails with some of them: the others are done, and are not handed out again.
// prints: called with good bad better
// prints: called with bad
// prints: all is done
import { createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

const settings = { consumerBatchSize: 10, retryInPlace: true }
await prepare({ topicName: 'batches', queues: 1, groupName: 'batch-workers', settings })
const done = Promise.withResolvers<void>()
let isRepaired = false

const client = createClient({ url, onEvent: () => {} })
// #region partial-failure
const consumer = client.consumer({
  groupName: 'batch-workers',
  topics: {
    // What it returns are the offsets of those that failed; nothing, or an empty array, means that all are done.
    batches(messages) {
      console.log(`called with ${messages.map(({ body }) => body).join(' ')}`)
      const failed = messages.filter(({ body }) => body === 'bad' && !isRepaired)
      return failed.map(({ offset }) => offset)
    },
  },
  listeners: {
    postHandle(_messages, _context, { outcome }) {
      if (outcome === 'done') done.resolve()
      else isRepaired = true
    },
  },
})
// #endregion
await client.publish(
  'batches',
  ['good', 'bad', 'better'].map(body => ({ body })),
)
await consumer.start()
await done.promise
console.log('all is done')
await client.close()
