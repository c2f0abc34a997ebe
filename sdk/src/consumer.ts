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
   * With an `instanceId` it does not leave: its queues wait for the next consumer of that id, or for the session to time
   * out (30 s). Safe to call at any time, twice and at once; never rejects. A handler may call it but must not await it:
   * it waits for the handler.
   */
  stop(options?: StopOptions): Promise<void>
  /** What it is doing now; costs no request. */
  status(): ConsumerStatus
}

/** How a consumer stops. */
export type StopOptions = {
  /**
   * Leave the group in spite of an `instanceId`, as one does that will not be started again: its queues go to others at
   * once. Counts if it comes before the end of a stop that is under way.
   * @default false
   */
  leave?: boolean | undefined
}

/** What a consumer is doing. */
export type ConsumerStatus = {
  state: Lifecycle['state']
  consumerName: string
  /** The id that the service knows it by; undefined while it does not. */
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
  /** Called when there is something to stop, and when there is nothing any more. The first throws where nothing may start. */
  onStarted(): void
  onStopped(): void
}

/** Makes a consumer. Throws a `PmqClientError` with code `invalid_options` for options that cannot be. */
export function createConsumer(deps: ConsumerDeps, given: ConsumerOptions): Consumer {
  const options = resolveConsumerOptions(given)
  const emit = options.onEvent ? containListener(options.onEvent) : deps.emit
  const consumerName = makeConsumerName(deps.clientIp, deps.clock.now(), deps.random)
  let run: ReturnType<typeof createRun> | undefined
  let leaves = false

  const lifecycle = createLifecycle({
    async open(signal) {
      deps.onStarted()
      leaves = false
      run = createRun({ ...deps, emit }, options, consumerName, () => void lifecycle.stop())
      await run.open(signal)
    },
    async close() {
      await run?.close(() => options.instanceId !== undefined && !leaves)
      run = undefined
      deps.onStopped()
    },
  })

  function stop(how?: StopOptions): Promise<void> {
    // Anything may come: it is a listener where a program writes `once('SIGTERM', consumer.stop)`.
    if (how?.leave === true) leaves = true
    return lifecycle.stop()
  }

  return {
    async start() {
      // At once: a client that is closed in the same turn has to stop it.
      deps.onStarted()
      await lifecycle.start()
    },
    stop,
    [Symbol.asyncDispose]: () => stop(),
    status: () => ({
      state: lifecycle.state,
      consumerName,
      consumerId: run?.membership.consumerId,
      queues: run?.queues.status() ?? [],
    }),
  }
}

/** What exists between a start and a stop: the membership, the queues' workers, and the committer that they share. */
function createRun(deps: ConsumerDeps, options: ResolvedConsumerOptions, consumerName: string, onReplaced: () => void) {
  const { api, clock, random, emit, requestTimeoutMs } = deps

  const committer = createCommitter({
    ...options,
    clock,
    random,
    async send(queueOffsets: CommitEntry[], givesUp, signal) {
      const request = { queueOffsets, flag: givesUp ? (1 as const) : (0 as const) }
      const answer = await api.commitOffset(request, { timeoutMs: requestTimeoutMs, signal })
      membership.sawVersion(expectSuccess('commitOffset', answer).versions?.[membership.groupName])
      return answer
    },
    onFailed(error, retryInMs) {
      const retry = retryInMs === undefined ? {} : { retryInMs }
      emit({ type: 'request_failed', operation: 'commitOffset', groupName: membership.groupName, error, ...retry })
    },
  })

  const queues = createQueueSet({ ...options, startWorker, finish: committer.finish, emit, clock })

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
    working: queues.working,
    onExpired: queues.dropAll,
    onReplaced,
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
        onRefused(worker, result) {
          queues.refuse(worker, result)
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
    async close(keepsPlace: () => boolean) {
      membership.freeze()
      await queues.drainAll(options.stopTimeoutMs, keepsPlace)
      await membership.leave(keepsPlace())
      committer.close()
    },
  }
}
