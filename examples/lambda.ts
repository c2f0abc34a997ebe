// A function that works through what there is each time it is invoked; here without Lambda around it.
// prints: handled 5, failed 0, drained
// prints: handled 0, failed 0, drained
import { createClient } from 'pmq-sdk'
import { lambdaConsumer } from 'pmq-sdk/lambda'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'invoked', queues: 2, groupName: 'functions', mode: 'claimed' })
const client = createClient({ url })
await client.publish(
  'invoked',
  Array.from({ length: 5 }, (_, index) => ({ bizId: `id-${index}`, body: `message ${index}` })),
)
await client.close()

// #region lambda
export const handler = lambdaConsumer({
  url,
  groupName: 'functions', // a group of mode `claimed`
  topics: {
    async invoked(messages, { signal }) {
      for (const { bizId, body } of messages) {
        signal.throwIfAborted() // the function's time is nearly up
        await save(bizId, body) // the same however often it comes; queue and offset are others behind a failure
      }
    },
  },
})
// #endregion

// Delivery is at least once, so what a handler does has to bear repetition: here, under the same name.
async function save(_name: string, _body: string): Promise<void> {}

for (let invocation = 1; invocation <= 2; invocation++) {
  const { handled, failed, isDrained } = await handler()
  console.log(`handled ${handled}, failed ${failed}, ${isDrained ? 'drained' : 'stopped in time'}`)
}
