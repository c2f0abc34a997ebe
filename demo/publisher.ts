import { createClient, type PublishResult } from 'pmq-sdk'
import { readRecords } from './records.ts'

/** The publisher of the demo: every record once, at a steady pace, records of one kind in order. */
const [url = '', topicName = ''] = process.argv.slice(2)

const recordsPerTick = 40
const tickMs = 20

const records = await readRecords()
const client = createClient({ url })
const sent: Promise<PublishResult>[] = []
for (let next = 0; next < records.length; next += recordsPerTick) {
  for (const [i, { key, body }] of records.slice(next, next + recordsPerTick).entries()) {
    sent.push(
      client.publish(topicName, { key, body, bizId: `record-${next + i}`, head: { sentAt: String(Date.now()) } }),
    )
  }
  await new Promise(resolve => setTimeout(resolve, tickMs))
}
await Promise.all(sent)
await client.close()
process.send?.({ published: sent.length }, () => process.disconnect?.())
