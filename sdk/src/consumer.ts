import type { Clock } from '../../core/protocol/clock.ts'
import type { CommitEntry } from '../../core/protocol/commit.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { type Api, expectSuccess } from './api.ts'
import { createCommitter } from './committer.ts'
import { type ConsumerOptions, type ResolvedConsumerOptions, resolveConsumerOptions } from './consumer-options.ts'
import { containListener, type EventListener } from './events.ts'
import { makeConsumerName } from './identity.ts'
import { createLifecycle, type Lifecycle } from './lifecycle.ts'
import { createMembership } from './membership.ts'
import { createQueueSet } from './queue-set.ts'
import { createQueueWorker, type QueueStatus } from './worker/queue-worker.ts'

/** Works through the queues that its group assigns to it. */
export interface Consumer extends AsyncDisposable {
  /**
   * Joins the group and begins to work. Resolves when the service has accepted the consumer; a service that is away is
   * waited for. Rejects with a `PmqClientError` at a definite refusal, such as of a group that does not exist. Resolves
   * too if `stop` is called meanwhile. Safe to call twice; works again after a stop.
   */
  start(): Promise<void>
  /**
   * Stops pulling, lets running handler calls end for up to `stopTimeoutMs`, commits, leaves the group: in this order.
   * Safe to call at any time, twice and at once; never rejects. A handler may call it but must not await it: it waits
   * for the handler.
   */
  stop(): Promise<void>
  /** What it is doing now; costs no request. */
  status(): ConsumerStatus
}

/** What a consumer is doing. */
export type ConsumerStatus = {
  state: Lifecycle['state']
  consumerName: string
  /** The id that the service knows it by. */
  consumerId: number | undefined
  queues: QueueStatus[]
}

/** What a consumer is made of. */
export type ConsumerDeps = {
  api: Api
  clock: Clock
  random: () => number
  clientIp: string
  requestTimeoutMs: number
  emit: EventListener
  /** Called when there is something to stop, and when there is nothing any more. */
  onStarted(): void
  onStopped(): void
}

/** Makes a consumer. Throws a `PmqClientError` with code `invalid_options` for options that cannot be. */
export function createConsumer(deps: ConsumerDeps, given: ConsumerOptions): Consumer {
  const options = resolveConsumerOptions(given)
  const emit = options.onEvent ? containListener(options.onEvent) : deps.emit
  const consumerName = makeConsumerName(deps.clientIp, deps.clock.now(), deps.random)
  let run: ReturnType<typeof createRun> | undefined

  const lifecycle = createLifecycle({
    async open(signal) {
      deps.onStarted()
      run = createRun({ ...deps, emit }, options, consumerName)
      await run.open(signal)
    },
    async close() {
      await run?.close()
      run = undefined
      deps.onStopped()
    },
  })

  return {
    start: lifecycle.start,
    stop: lifecycle.stop,
    [Symbol.asyncDispose]: lifecycle.stop,
    status: () => ({
      state: lifecycle.state,
      consumerName,
      consumerId: run?.membership.consumerId,
      queues: run?.queues.status() ?? [],
    }),
  }
}

/** What exists between a start and a stop: the membership, the queues' workers, and the committer that they share. */
function createRun(deps: ConsumerDeps, options: ResolvedConsumerOptions, consumerName: string) {
  const { api, clock, random, emit, requestTimeoutMs } = deps

  const committer = createCommitter({
    ...options,
    clock,
    random,
    async send(queueOffsets: CommitEntry[], isFinal, signal) {
      const request = { queueOffsets, flag: isFinal ? (1 as const) : (0 as const) }
      const answer = await api.commitOffset(request, { timeoutMs: requestTimeoutMs, signal })
      membership.sawVersion(expectSuccess('commitOffset', answer).versions?.[membership.groupName])
      return answer
    },
    onFailed(error, retryInMs) {
      const retry = retryInMs === undefined ? {} : { retryInMs }
      emit({ type: 'request_failed', operation: 'commitOffset', groupName: membership.groupName, error, ...retry })
    },
  })

  const queues = createQueueSet({ ...options, startWorker, release: committer.release, emit, clock })

  const membership = createMembership({
    ...options,
    api,
    clock,
    random,
    consumerName,
    topicNames: Object.keys(options.topics),
    requestTimeoutMs,
    emit,
    apply: queues.apply,
    onExpired: queues.dropAll,
  })

  function startWorker(queue: AssignedQueue) {
    const { topics } = options
    const handler = Object.hasOwn(topics, queue.originTopicName) ? topics[queue.originTopicName] : undefined
    if (!handler) return undefined
    return createQueueWorker(
      {
        handler,
        ask,
        onProgress: committer.changed,
        onFenced(worker, offsetVersion) {
          queues.fence(worker, offsetVersion)
          membership.refresh()
        },
        emit,
        clock,
        random,
        options,
      },
      queue,
    )
  }

  async function ask(queue: AssignedQueue, position: number, signal: AbortSignal) {
    const { queueId, topicName, consumerGroupName } = queue
    const { maxPullBytes: maxBytes, maxPullWaitMs } = options
    const waitMs = Math.min(maxPullWaitMs, queue.maxPullTime * 1000)
    const request = { queueId, offsetStart: position, topicName, consumerGroupName, maxBytes, waitMs }
    const answer = await api.pullData(request, { timeoutMs: requestTimeoutMs + waitMs, signal })
    membership.sawVersion(expectSuccess('pullData', answer).version)
    return answer
  }

  return {
    membership,
    queues,
    async open(signal: AbortSignal) {
      await membership.join(signal)
      if (!signal.aborted) void membership.run()
    },
    async close() {
      membership.freeze()
      await queues.drainAll(options.stopTimeoutMs)
      await membership.leave()
      committer.close()
    },
  }
}
