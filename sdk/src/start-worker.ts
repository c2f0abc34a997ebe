import { randomUUID } from 'node:crypto'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { orderingOf, type ResolvedConsumerOptions } from './consumer-options.ts'
import { traceHandler, tracePull } from './tracing/trace-consumer.ts'
import type { Tracing } from './tracing/tracing.ts'
import { createQueueWorker } from './worker/queue-worker.ts'
import type { QueueWorker, QueueWorkerDeps } from './worker/worker-types.ts'

/** What a worker is started with: what it is made of, but for what follows from the options and the tracing. */
export type StartWorkerDeps = Omit<QueueWorkerDeps, 'handler' | 'isKeyed' | 'newPublishId'> & {
  options: Pick<ResolvedConsumerOptions, 'topics' | 'ordering'>
  tracing: Tracing | undefined
}

/** Starts to work through a queue; undefined where its topic has no handler. */
export function startQueueWorker(deps: StartWorkerDeps, queue: AssignedQueue): QueueWorker | undefined {
  const { tracing, ask, options } = deps
  const { topics } = options
  const handler = Object.hasOwn(topics, queue.originTopicName) ? topics[queue.originTopicName] : undefined
  if (!handler) return undefined
  return createQueueWorker(
    {
      ...deps,
      handler: tracing ? traceHandler(tracing, handler) : handler,
      ask: tracing ? tracePull(tracing, ask) : ask,
      isKeyed: orderingOf(options, queue.originTopicName) === 'key',
      newPublishId: randomUUID,
    },
    queue,
  )
}
