import { SendMessageBatchCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { Consumer } from 'sqs-consumer'
import { type Act, bodyOf, publishAlong, type Shift } from '../acts.ts'

/** The AWS SDK for publishing, sqs-consumer on top of it for consuming; ten messages a request are what SQS allows. */
export async function workWithSqs(queueUrl: string, act: Act, shift: Shift): Promise<() => Promise<unknown>> {
  const credentials = { accessKeyId: 'bench', secretAccessKey: 'bench' }
  const sqs = new SQSClient({ endpoint: new URL(queueUrl).origin, region: 'eu-west-1', credentials })
  if (act.verb === 'publish') {
    return publishAlong(act, shift, first =>
      act.perCall === 1
        ? sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: bodyOf(first) }))
        : sqs.send(
            new SendMessageBatchCommand({
              QueueUrl: queueUrl,
              Entries: Array.from({ length: act.perCall }, (_, i) => ({ Id: `${i}`, MessageBody: bodyOf(first + i) })),
            }),
          ),
    )
  }
  /** What is returned is deleted. */
  async function handle<T>(received: T, count: number): Promise<T> {
    if (shift.closed) await shift.closed
    shift.messages += count
    return received
  }
  const consumer = Consumer.create({
    queueUrl,
    sqs,
    batchSize: 10,
    ...(act.perCall === 1
      ? { handleMessage: message => handle(message, 1) }
      : { handleMessageBatch: messages => handle(messages, messages.length) }),
  })
  // Thrown in here it would be caught.
  consumer.on('error', error => setImmediate(() => Promise.reject(error)))
  consumer.start()
  return async () => consumer.stop()
}
