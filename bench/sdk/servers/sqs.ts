import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { bodyOf } from '../acts.ts'
import { listen } from './listen.ts'
import { readText } from './pmq.ts'

/** SQS by its JSON protocol: it takes everything, and always has ten messages. */
export async function serveSqs(): Promise<string> {
  const server = createServer(async (incoming, outgoing) => {
    const operation = String(incoming.headers['x-amz-target']).split('.').at(-1) ?? ''
    const answer = answers[operation]?.(JSON.parse(await readText(incoming))) ?? {}
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer)
    outgoing.writeHead(200, { 'content-type': 'application/x-amz-json-1.0', 'content-length': Buffer.byteLength(text) })
    outgoing.end(text)
  })
  return `http://${await listen(server)}/000000000000/bench`
}

type Entry = { Id: string; MessageBody: string }
type Request = { MessageBody?: string; Entries?: Entry[] }

const md5 = (text: string) => createHash('md5').update(text).digest('hex')

const received = JSON.stringify({
  Messages: Array.from({ length: 10 }, (_, n) => ({
    MessageId: `00000000-0000-0000-0000-00000000000${n}`,
    // Those of SQS are as long.
    ReceiptHandle: `${n}`.padEnd(180, 'receipt'),
    Body: bodyOf(n),
    MD5OfBody: md5(bodyOf(n)),
  })),
})

const answers: Record<string, (request: Request) => object | string> = {
  ReceiveMessage: () => received,
  DeleteMessage: () => ({}),
  DeleteMessageBatch: ({ Entries = [] }) => ({ Successful: Entries.map(({ Id }) => ({ Id })), Failed: [] }),
  SendMessage: ({ MessageBody = '' }) => ({ MessageId: 'sent', MD5OfMessageBody: md5(MessageBody) }),
  SendMessageBatch: ({ Entries = [] }) => ({
    Successful: Entries.map(({ Id, MessageBody }) => ({ Id, MessageId: 'sent', MD5OfMessageBody: md5(MessageBody) })),
    Failed: [],
  }),
}
