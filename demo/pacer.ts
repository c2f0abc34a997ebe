import { createClient, type PublishResult } from 'pmq-sdk'

/** Publishes one message to each of many keys again and again, at a steady pace, until it is told to end. */
const [url = '', topicName = '', keys = '64', tickMs = '50'] = process.argv.slice(2)

const client = createClient({ url })
const sent: Promise<PublishResult>[] = []
let isEnding = false
process.once('message', () => {
  isEnding = true
})
while (!isEnding) {
  for (let key = 0; key < Number(keys); key++) {
    const head = { sentAt: String(Date.now()) }
    sent.push(
      client.publish(topicName, { key: `key-${key}`, body: `${sent.length}`, bizId: `message-${sent.length}`, head }),
    )
  }
  await new Promise(resolve => setTimeout(resolve, Number(tickMs)))
}
await Promise.all(sent)
await client.close()
process.send?.({ published: sent.length }, () => process.disconnect?.())
