import type { Clock } from '../../../core/protocol/clock.ts'
import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { Api } from '../api.ts'
import { createCommitter } from '../committer.ts'
import { consumerDefaults } from '../consumer-options.ts'
import { asClientError } from '../errors.ts'
import type { EventListener } from '../events.ts'
import { createQueueRequests } from '../queue-requests.ts'
import { createQueueSet } from '../queue-set.ts'
import { startQueueWorker } from '../start-worker.ts'
import type { Tracing } from '../tracing/tracing.ts'
import { createWakeup } from '../wakeup.ts'
import { toWallMs } from '../worker/queue-status.ts'
import { createTrialTurns } from '../worker/trial-turns.ts'
import type { QueueWorker } from '../worker/worker-types.ts'
import type { ResolvedLambdaOptions } from './lambda-options.ts'

/** What the queues of an invocation are made of. */
export type ClaimedQueuesDeps = {
  api: Api
  clock: Clock
  random: () => number
  requestTimeoutMs: number
  tracing: Tracing | undefined
  emit: EventListener
  options: ResolvedLambdaOptions
  stopTimeoutMs: number
  /** When the work has to end, by the monotonic clock. */
  workEndsAtMs: number
  /** Aborts when it ends. */
  signal: AbortSignal
}

/** The queues that an invocation has claimed. */
export type ClaimedQueues = {
  /** Begins to work on queues that were claimed. Each is given up when it has nothing more that is due. */
  begin(claimed: readonly AssignedQueue[]): void
  /** Resolves when a queue has been given up since it was last asked, or the end has begun. */
  givenUp(): Promise<void>
  /** How many it has. */
  readonly size: number
  /** Which they are. */
  heldQueueIds(): number[]
  /** How many it has had. */
  readonly worked: number
  /** Queues that were given up with messages that are not due yet, or that nothing could be done for. */
  passedOver(): number[]
  /** When the first message is due of those that queues were given up with, in milliseconds since 1970. */
  readonly nextDueAtMs: number | undefined
  /** Ends in order: no more calls begin, running ones have `timeoutMs`, what is done is committed, all is given up. */
  stop(timeoutMs: number): Promise<void>
  /** Gives up commits that are under way. */
  close(): void
}

/** Makes the queues of an invocation that has none yet. */
export function createClaimedQueues(deps: ClaimedQueuesDeps): ClaimedQueues {
  const { clock, random, emit, tracing, options, stopTimeoutMs } = deps
  const held = new Map<number, AssignedQueue>()
  const worked = new Set<number>()
  /** Queue → when it is worth a look again, by the monotonic clock. */
  const passedOver = new Map<number, number>()
  const news = createWakeup(clock)
  deps.signal.addEventListener('abort', news.wake, { once: true })
  /** Queues that were given up, of which the service may not know yet. */
  const leaving = new Set<number>()

  const requests = createQueueRequests({ ...deps, ...options, maxPullWaitMs: 0, consumerId: () => undefined })
  const committer = createCommitter({
    ...options,
    syncCommit: options.syncCommit || options.commit === 'manual',
    clock,
    random,
    send: requests.commit,
    onFailed(error, retryInMs) {
      const retry = retryInMs === undefined ? {} : { retryInMs }
      emit({ type: 'request_failed', operation: 'commitOffset', groupName: options.groupName, error, ...retry })
    },
  })
  // A queue is given up when nothing runs any more, or it is lost; then old calls have as long as at the end.
  const queues = createQueueSet({ startWorker, finish: committer.finish, emit, clock, revokeTimeoutMs: stopTimeoutMs })
  const turns = createTrialTurns(clock)
  const { maxQueues, maxBufferedMessages, maxBufferedBytes } = options
  const workerOptions = {
    ...options,
    pullDeltaTimeMs: consumerDefaults.pullDeltaTimeMs,
    maxBufferedMessages: Math.ceil(maxBufferedMessages / maxQueues),
    maxBufferedBytes: Math.ceil(maxBufferedBytes / maxQueues),
  }

  function startWorker(queue: AssignedQueue) {
    return startQueueWorker(
      {
        ask,
        tracing,
        turns,
        sendFailures: requests.sendFailures,
        isPaused: () => false,
        onProgress: committer.changed,
        onRefused(worker, result) {
          queues.refuse(worker, result)
          giveUp(worker.queue, undefined)
        },
        onQuiet,
        emit,
        clock,
        random,
        options: workerOptions,
      },
      queue,
    )
  }

  async function ask(queue: AssignedQueue, position: number, signal: AbortSignal) {
    try {
      return await requests.pull(queue, position, signal)
    } catch (error) {
      // Nobody tells an invocation that a queue was removed; it is refused, and will be.
      if (asClientError(error).code === 'refused') giveUp(queue, Number.POSITIVE_INFINITY)
      throw error
    }
  }

  /** Waits where what waits is soon due; else gives the queue up. */
  function onQuiet(worker: QueueWorker) {
    const { committed, uncommitted, nextDueAtMs } = worker.status()
    const dueInMs = nextDueAtMs === undefined ? undefined : nextDueAtMs - clock.now()
    const patienceMs = Math.min(options.maxIdleMs, deps.workEndsAtMs - clock.monotonic())
    if (dueInMs !== undefined && dueInMs <= patienceMs) return
    // One that stays as it was would be claimed again, and again.
    const hasMoved = committed + uncommitted > worker.queue.offset
    const restMs = dueInMs ?? (hasMoved ? undefined : Number.POSITIVE_INFINITY)
    giveUp(worker.queue, restMs)
  }

  function giveUp({ queueOffsetId, queueId }: AssignedQueue, restMs: number | undefined) {
    if (!held.delete(queueOffsetId)) return
    if (restMs !== undefined) passedOver.set(queueId, clock.monotonic() + restMs)
    void letGo(queueId)
  }

  async function letGo(queueId: number) {
    leaving.add(queueId)
    await queues.apply([...held.values()])
    leaving.delete(queueId)
    news.wake()
  }

  return {
    begin(claimed) {
      for (const queue of claimed) {
        held.set(queue.queueOffsetId, queue)
        worked.add(queue.queueId)
        passedOver.delete(queue.queueId)
      }
      void queues.apply([...held.values()])
    },
    givenUp: () => news.wait(),
    get size() {
      return held.size + leaving.size
    },
    heldQueueIds: () => [...[...held.values()].map(({ queueId }) => queueId), ...leaving],
    get worked() {
      return worked.size
    },
    passedOver() {
      const nowMs = clock.monotonic()
      return [...passedOver].filter(([, untilMs]) => untilMs > nowMs).map(([queueId]) => queueId)
    },
    get nextDueAtMs() {
      const untilMs = Math.min(...passedOver.values())
      return Number.isFinite(untilMs) ? toWallMs(untilMs, clock) : undefined
    },
    stop(timeoutMs) {
      committer.hurry()
      return queues.drainAll(timeoutMs, () => false)
    },
    close: committer.close,
  }
}
