import { hash } from 'node:crypto'
import type { Access } from '../iam/access.ts'
import type { LocalQueue } from '../sqs/queue.ts'
import { arnOf } from '../template/account.ts'
import { type AwsAnswer, type AwsCall, accessDenied, awsError, notRehearsed } from './call.ts'

type Message = { Id?: string; MessageBody?: string; DelaySeconds?: number; MessageAttributes?: Record<string, unknown> }
type Request = Message & { QueueUrl?: string; Entries?: Message[] }

/** AWS takes 1 MB by now, and not in all partitions. */
const maxMessageBytes = 256 * 1024
const maxDelaySeconds = 900
const maxBatchEntries = 10

/** SQS's API, of which it has sending: receiving is Lambda's, by an event source mapping. */
export function createSqsApi(
  queues: ReadonlyMap<string, LocalQueue>,
  access: Access,
): (call: AwsCall) => Promise<AwsAnswer> {
  return async ({ caller, operation, body }) => {
    if (operation !== 'SendMessage' && operation !== 'SendMessageBatch') return notRehearsed(`sqs:${operation}`)
    const request: Request = JSON.parse(body.toString())
    const arn = arnOf('sqs', (request.QueueUrl ?? '').replace(/^.*\//, ''))
    const { refusal } = access.ask(caller, 'sqs:SendMessage', arn)
    if (refusal) return accessDenied(refusal, 403)
    const queue = queues.get(arn)
    if (!queue) return awsError(400, 'QueueDoesNotExist', `there is no queue ${request.QueueUrl}`)
    if (operation === 'SendMessage') {
      const wrong = whatIsWrong([request])
      return wrong ?? { status: 200, body: JSON.stringify(send(queue, request)) }
    }
    const { Entries = [] } = request
    const wrong = whatIsWrong(Entries)
    if (wrong) return wrong
    return { status: 200, body: JSON.stringify({ Successful: Entries.map(entry => send(queue, entry)), Failed: [] }) }
  }
}

function whatIsWrong(messages: Message[]): AwsAnswer | undefined {
  const bytes = messages.reduce((sum, { MessageBody = '' }) => sum + Buffer.byteLength(MessageBody), 0)
  if (messages.length < 1 || messages.length > maxBatchEntries || bytes > maxMessageBytes) {
    const given = `${messages.length} messages of ${bytes} bytes together`
    return awsError(
      400,
      'InvalidParameterValue',
      `1 to ${maxBatchEntries} messages of ${maxMessageBytes} bytes together are accepted, not ${given}`,
    )
  }
  for (const { MessageBody = '', DelaySeconds = 0 } of messages) {
    if (MessageBody === '') return awsError(400, 'MissingParameter', 'a message needs a body')
    if (!(DelaySeconds >= 0 && DelaySeconds <= maxDelaySeconds)) {
      return awsError(400, 'InvalidParameterValue', `DelaySeconds may be 0 to ${maxDelaySeconds}, not ${DelaySeconds}`)
    }
  }
  return undefined
}

/** The SDK checks that the body's hash is the one that it has sent. */
function send(queue: LocalQueue, { Id, MessageBody = '', DelaySeconds, MessageAttributes = {} }: Message) {
  const messageId = queue.send(MessageBody, {
    attributes: MessageAttributes,
    ...(DelaySeconds !== undefined && { delayMs: DelaySeconds * 1000 }),
  })
  return { ...(Id !== undefined && { Id }), MessageId: messageId, MD5OfMessageBody: hash('md5', MessageBody) }
}
