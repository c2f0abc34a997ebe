import type { MovableClock } from '../clock.ts'
import { asNumber, asRecord, asText, expectOnly } from '../template/read.ts'
import type { Stack } from '../template/stack.ts'
import { createQueue, type LocalQueue, type QueueSpec } from './queue.ts'

/** The queues of the template, by their ARN. */
export function createQueues(stack: Stack, clock: MovableClock): Map<string, LocalQueue> {
  const queues = new Map<string, LocalQueue>()
  for (const spec of readQueues(stack))
    queues.set(
      spec.arn,
      createQueue(spec, clock, arn => queues.get(arn)),
    )
  for (const { spec } of queues.values()) {
    const { redrive } = spec
    if (redrive && !queues.has(redrive.deadLetterArn)) {
      throw new Error(`the dead-letter queue of ${spec.name}, ${redrive.deadLetterArn}, is not in the template`)
    }
  }
  return queues
}

const known = [
  'DelaySeconds',
  // Encryption, and how long an empty receive waits, change nothing that a function sees.
  'KmsMasterKeyId',
  'SqsManagedSseEnabled',
  'ReceiveMessageWaitTimeSeconds',
  'MessageRetentionPeriod',
  'QueueName',
  'RedrivePolicy',
  'Tags',
  'VisibilityTimeout',
]

function readQueues(stack: Stack): QueueSpec[] {
  return stack.all('AWS::SQS::Queue').map(({ id, arn, properties }) => {
    expectOnly(properties, id, known)
    const { DelaySeconds = 0, VisibilityTimeout = 30, MessageRetentionPeriod = 345_600, RedrivePolicy } = properties
    const redrive = RedrivePolicy === undefined ? undefined : asRecord(RedrivePolicy, id)
    return {
      name: arn.replace(/^.*:/, ''),
      arn,
      delayMs: asNumber(DelaySeconds, id) * 1000,
      visibilityMs: asNumber(VisibilityTimeout, id) * 1000,
      retentionMs: asNumber(MessageRetentionPeriod, id) * 1000,
      redrive: redrive && {
        deadLetterArn: asText(redrive.deadLetterTargetArn, id),
        maxReceiveCount: asNumber(redrive.maxReceiveCount, id),
      },
    }
  })
}
