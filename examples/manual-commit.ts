// The program says itself what is done: here when it has written several calls' messages at once.
// prints: wrote 1 2 3 4
// prints: committed up to offset 4
import { createClient } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'rows', queues: 1, groupName: 'writers', settings: { threadSize: 1, consumerBatchSize: 2 } })
const done = Promise.withResolvers<void>()
const rows: string[] = []

const client = createClient({ url })
// #region manual-commit
const consumer = client.consumer({
  groupName: 'writers',
  commit: 'manual',
  topics: {
    async rows(messages, { commit }) {
      rows.push(...messages.map(({ body }) => body))
      if (rows.length < 4) return // handed out, and not done: a crash has them handed out again
      console.log(`wrote ${rows.splice(0).join(' ')}`)

      const last = messages.at(-1)?.offset ?? 0
      await commit(last) // everything of the queue up to there
      console.log(`committed up to offset ${last}`)
      done.resolve()
    },
  },
})
// #endregion
await consumer.start()
await client.publish(
  'rows',
  ['1', '2', '3', '4'].map(body => ({ body })),
)
await done.promise
await client.close()
