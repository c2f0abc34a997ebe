import type { Clock } from '../../core/protocol/clock.ts'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import type { Api } from './api.ts'
import { createCommitter } from './committer.ts'
import { type ConsumerOptions, type ResolvedConsumerOptions, resolveConsumerOptions } from './consumer-options.ts'
import { containListener, type EventListener } from './events.ts'
import { type ConsumerHealth, judgeHealth } from './health.ts'
import { makeConsumerName } from './identity.ts'
import { createLifecycle, type LifecycleState } from './lifecycle.ts'
import { createMembership } from './membership.ts'
import { createPauses, type Pauses, type QueueSelection } from './pauses.ts'
import { createQueueRequests } from './queue-requests.ts'
import { createQueueSet } from './queue-set.ts'
import { startQueueWorker } from './start-worker.ts'
import type { Tracing } from './tracing/tracing.ts'
import type { QueueStatus } from './worker/queue-status.ts'
import { createTrialTurns } from './worker/trial-turns.ts'

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
  /**
   * Pauses queues of this consumer: nothing of them is pulled and handed out until `resume`; what runs may end. All of
   * them, or those selected, also those that it is given later: a pause outlives rebalances, resets, and a stop with the
   * start after it. A queue that is paused stays with this consumer; another one of the group would not pause it.
   */
  pause(selection?: QueueSelection): void
  /** Ends the pause of the same selection; without one, all pauses. */
  resume(selection?: QueueSelection): void
  /**
   * Says that there may be messages in these queues, as a notification does: where one of them is in its pause, it is
   * pulled at once. Others than its own are passed over. Harmless at any time, twice, and where it is not true.
   */
  hint(queueIds: readonly number[]): void
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
  state: LifecycleState
  /** Its name in the service's lists; another one for each consumer object. */
  consumerName: string
  /** The id that the service knows it by; undefined while it does not. */
  consumerId: number | undefined
  /** Fit for a liveness probe. */
  health: ConsumerHealth
  /** The queues that it works through now. */
  queues: QueueStatus[]
}

/** What a consumer is made of. */
export type ConsumerDeps = {
  api: Api
  clock: Clock
  random: () => number
  clientIp: string
  requestTimeoutMs: number
  tracing: Tracing | undefined
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
  const pauses = createPauses()
  let run: ReturnType<typeof createRun> | undefined
  let leaves = false
  let isReplaced = false

  const lifecycle = createLifecycle({
    async open(signal) {
      deps.onStarted()
      leaves = false
      isReplaced = false
      run = createRun({ ...deps, emit }, options, consumerName, pauses, () => {
        isReplaced = true
        void lifecycle.stop()
      })
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
    pause(selection = {}) {
      pauses.pause(selection)
      run?.queues.pausesChanged()
    },
    resume(selection = {}) {
      pauses.resume(selection)
      run?.queues.pausesChanged()
    },
    hint: queueIds => run?.queues.hint(queueIds),
    status() {
      const queues = run?.queues.status() ?? []
      const health = judgeHealth({ ...options, ...deps, isReplaced, silentForMs: silentForMs(), queues })
      return { state: lifecycle.state, consumerName, consumerId: run?.membership.consumerId, health, queues }
    },
  }

  /** Only one that is meant to work has to be heard. */
  function silentForMs(): number | undefined {
    const heardAtMs = run?.membership.lastHeardAtMs
    return lifecycle.state === 'running' && heardAtMs !== undefined ? deps.clock.monotonic() - heardAtMs : undefined
  }
}

/** What exists between a start and a stop: the membership, the queues' workers, and the committer that they share. */
function createRun(
  deps: ConsumerDeps,
  options: ResolvedConsumerOptions,
  consumerName: string,
  pauses: Pauses,
  onReplaced: () => void,
) {
  const { api, clock, random, emit, requestTimeoutMs, tracing } = deps

  const requests = createQueueRequests({
    ...options,
    api,
    requestTimeoutMs,
    consumerId: () => membership.consumerId,
    onVersion(groupName, version) {
      if (groupName === membership.groupName) membership.sawVersion(version)
    },
  })

  const committer = createCommitter({
    ...options,
    // Who commits by hand waits for each.
    syncCommit: options.syncCommit || options.commit === 'manual',
    clock,
    random,
    send: requests.commit,
    onFailed(error, retryInMs) {
      const retry = retryInMs === undefined ? {} : { retryInMs }
      emit({ type: 'request_failed', operation: 'commitOffset', groupName: membership.groupName, error, ...retry })
    },
  })

  const turns = createTrialTurns(clock)
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
    return startQueueWorker(
      {
        ask: requests.pull,
        tracing,
        turns,
        sendFailures: requests.sendFailures,
        isPaused: pauses.isPaused,
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

  return {
    membership,
    queues,
    async open(signal: AbortSignal) {
      await membership.join(signal)
      if (!signal.aborted) void membership.run()
    },
    async close(keepsPlace: () => boolean) {
      membership.freeze()
      committer.hurry()
      await queues.drainAll(options.stopTimeoutMs, keepsPlace)
      await membership.leave(keepsPlace())
      committer.close()
    },
  }
}
