import { hash } from 'node:crypto'
import type { Activity } from '../activity.ts'
import type { Access } from '../iam/access.ts'
import type { Invocation, RunningFunction } from '../lambda/function.ts'
import { account } from '../template/account.ts'
import { asList, asNumber, asRecord, asText, expectOnly } from '../template/read.ts'
import type { Stack } from '../template/stack.ts'
import type { LocalQueue, QueuedMessage } from './queue.ts'

export type EventSource = {
  id: string
  queue: LocalQueue
  target: RunningFunction
  batchSize: number
  reportsFailures: boolean
  isEnabled: boolean
  /** Invocations at once. */
  concurrency: number
}

const known = [
  'BatchSize',
  'Enabled',
  'EventSourceArn',
  'FunctionName',
  'FunctionResponseTypes',
  // A window lets a batch fill; without one it comes sooner and smaller, which a function has to bear as well.
  'MaximumBatchingWindowInSeconds',
  'ScalingConfig',
  'Tags',
]
/** Lambda begins with so many pollers. */
const defaultConcurrency = 5

export function readEventSources(
  stack: Stack,
  queues: ReadonlyMap<string, LocalQueue>,
  functions: ReadonlyMap<string, RunningFunction>,
): EventSource[] {
  return stack.all('AWS::Lambda::EventSourceMapping').map(({ id, properties }) => {
    expectOnly(properties, id, known)
    const {
      BatchSize = 10,
      Enabled = true,
      EventSourceArn,
      FunctionName,
      FunctionResponseTypes,
      ScalingConfig,
    } = properties
    const queue = queues.get(asText(EventSourceArn, id))
    const target = functions.get(asText(FunctionName, id).replace(/^.*function:/, ''))
    if (!queue || !target) throw new Error(`${id} has to lead from a queue of the template to a function of it`)
    const { visibilityMs, name } = queue.spec
    if (visibilityMs < target.spec.timeoutMs) {
      throw new Error(
        `Lambda refuses ${id}: the visibility timeout of ${name} (${visibilityMs} ms) is below the time-out of ${target.spec.name} (${target.spec.timeoutMs} ms)`,
      )
    }
    const { MaximumConcurrency = defaultConcurrency } = asRecord(ScalingConfig ?? {}, id)
    return {
      id,
      queue,
      target,
      batchSize: asNumber(BatchSize, id),
      reportsFailures: asList(FunctionResponseTypes).includes('ReportBatchItemFailures'),
      isEnabled: Enabled === true,
      concurrency: asNumber(MaximumConcurrency, id),
    }
  })
}

export type PollerDeps = { access: Access; activity: Activity }

/** Receives from the queue and invokes the function, as Lambda does with the function's own role, until stopped. */
export function pollEventSource(source: EventSource, { access, activity }: PollerDeps): { stop(): Promise<void> } {
  const { queue, target, batchSize } = source
  const stopping = new AbortController()
  const may = (action: string) => access.ask(target.caller, `sqs:${action}`, queue.spec.arn).refusal === undefined

  async function poll(): Promise<void> {
    while (!stopping.signal.aborted) {
      const messages = await queue.receive(batchSize, stopping.signal)
      if (messages.length === 0) return
      const { promise, resolve } = Promise.withResolvers<void>()
      activity.during(async () => {
        const event = { Records: messages.map(message => toRecord(message, queue.spec.arn)) }
        const done = doneOf(messages, await target.invoke(JSON.stringify(event)), source.reportsFailures)
        if (done.length > 0 && may('DeleteMessage')) for (const { receipt } of done) queue.delete(receipt)
        resolve()
      })
      await promise
    }
  }

  const isAllowed = may('ReceiveMessage') && may('GetQueueAttributes')
  const pollers = source.isEnabled && isAllowed ? Array.from({ length: source.concurrency }, poll) : []
  return {
    async stop() {
      stopping.abort()
      await Promise.all(pollers)
    },
  }
}

/** What is deleted: all of a batch that was handled, but for what the function says that it has failed with. */
function doneOf(messages: QueuedMessage[], result: Invocation, reportsFailures: boolean): QueuedMessage[] {
  if (result.outcome !== 'returned') return []
  if (!reportsFailures) return messages
  const { batchItemFailures = [] }: { batchItemFailures?: { itemIdentifier?: string }[] } =
    JSON.parse(result.payload) ?? {}
  const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier))
  const ids = new Set<string | undefined>(messages.map(({ messageId }) => messageId))
  // A failure that names no message of the batch makes all of it fail.
  if ([...failed].some(id => !ids.has(id))) return []
  return messages.filter(({ messageId }) => !failed.has(messageId))
}

function toRecord(message: QueuedMessage, queueArn: string) {
  return {
    messageId: message.messageId,
    receiptHandle: message.receipt,
    body: message.body,
    attributes: {
      ApproximateReceiveCount: String(message.receiveCount),
      SentTimestamp: String(message.sentAtMs),
      SenderId: account.id,
      ApproximateFirstReceiveTimestamp: String(message.firstReceivedAtMs),
    },
    messageAttributes: Object.fromEntries(
      Object.entries(message.attributes).map(([name, value]) => [name, lowerKeys(asRecord(value, name))]),
    ),
    md5OfBody: hash('md5', message.body),
    eventSource: 'aws:sqs',
    eventSourceARN: queueArn,
    awsRegion: account.region,
  }
}

/** Lambda writes `StringValue` as `stringValue`. */
const lowerKeys = (value: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(value).map(([key, each]) => [key.charAt(0).toLowerCase() + key.slice(1), each]))
