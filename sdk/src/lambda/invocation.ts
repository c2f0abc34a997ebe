import { type Backoff, fullJitterMs } from '../../../core/protocol/backoff.ts'
import type { Clock } from '../../../core/protocol/clock.ts'
import { limits } from '../../../core/protocol/limits.ts'
import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import { type Api, expectSuccess } from '../api.ts'
import { asClientError, type PmqClientError } from '../errors.ts'
import type { EventListener } from '../events.ts'
import type { Tracing } from '../tracing/tracing.ts'
import { endsWithin } from '../within.ts'
import { createClaimedQueues } from './claimed-queues.ts'
import type { LambdaReport } from './lambda-consumer.ts'
import type { ResolvedLambdaOptions } from './lambda-options.ts'
import { watchForOutage } from './outage-watch.ts'
import { createTally } from './tally.ts'

/** What an invocation is made of. */
export type InvocationDeps = {
  api: Api
  clock: Clock
  random: () => number
  requestTimeoutMs: number
  tracing: Tracing | undefined
  emit: EventListener
  /** Who claims, for people to read. */
  claimant: string
  options: ResolvedLambdaOptions
  /** Ends the work when it aborts. */
  signal: AbortSignal | undefined
}

const claimBackoff: Backoff = { baseMs: 200, maxMs: 5_000 }
/** What is left at the end when requests have been given up. */
const returnMs = 500

/**
 * Claims queues, works them empty, gives them up, and again, while there is something and time. Then everything ends: behind
 * it no timer is set and no request is under way. Rejects if the service has not let it do anything.
 *
 * ```
 * work, claims                │ running calls end │ commits           │ return
 * ────────────────────────────┼───────────────────┼───────────────────┼────────▶ the time is up, and so are the leases
 *                  stopTimeoutMs              reserveMs           returnMs
 * ```
 */
export async function runInvocation(
  deps: InvocationDeps,
  timeLimitMs: number,
  hinted: readonly number[],
): Promise<LambdaReport> {
  const { clock, random, emit, options } = deps
  const { groupName, reserveMs, maxQueues } = options
  const stopTimeoutMs = Math.min(options.stopTimeoutMs, (timeLimitMs - reserveMs) / 2)
  const workMs = timeLimitMs - reserveMs - stopTimeoutMs
  const startedAtMs = clock.monotonic()
  const ending = new AbortController()
  const endWork = () => ending.abort()
  deps.signal?.addEventListener('abort', endWork, { once: true })
  if (deps.signal?.aborted) endWork()
  const watched = watchForOutage(deps.api, clock, endWork)
  const { tally, listeners } = createTally(options.listeners)
  const queues = createClaimedQueues({
    ...deps,
    api: watched.api,
    options: { ...options, listeners },
    stopTimeoutMs,
    workEndsAtMs: startedAtMs + workMs,
    signal: ending.signal,
  })
  let refusal: PmqClientError | undefined

  const working = work()
  await endsWithin(clock, workMs, working, ending.signal)
  endWork()
  deps.signal?.removeEventListener('abort', endWork)
  // Soon, since it waits for nothing any more; and what it has claimed last is there to be given up.
  const isDrained = await working
  const stopped = queues.stop(stopTimeoutMs)
  const commitMs = reserveMs - Math.min(returnMs, reserveMs / 2)
  if (!(await endsWithin(clock, stopTimeoutMs + commitMs, stopped))) queues.close()
  await stopped
  queues.close()

  const trouble = refusal ?? watched.trouble
  if (trouble && tally.handled + tally.failed === 0) throw trouble
  const { nextDueAtMs } = queues
  return { ...tally, queues: queues.worked, isDrained, ...(nextDueAtMs !== undefined && { nextDueAtMs }) }

  /** True when there is nothing more. Never rejects. */
  async function work(): Promise<boolean> {
    let wanted = hinted
    // A claim that brings less than was asked for has found no more; when a queue is given up there may be.
    let isExhausted = false
    while (!ending.signal.aborted) {
      const room = maxQueues - queues.size
      if (room > 0 && !isExhausted) {
        const claimed = await claim(room, wanted)
        if (!claimed) break
        queues.begin(claimed)
        isExhausted = wanted.length === 0 && claimed.length < room
        if (claimed.length < room) wanted = []
      } else {
        if (queues.size === 0) return true
        await queues.givenUp()
        isExhausted = false
      }
    }
    return false
  }

  /** Undefined: there is no time for it any more, or it was refused. */
  async function claim(maxQueues: number, queueIds: readonly number[]): Promise<AssignedQueue[] | undefined> {
    for (let failures = 0; !ending.signal.aborted; failures++) {
      try {
        const request = claimRequest(maxQueues, queueIds)
        const callOptions = { timeoutMs: deps.requestTimeoutMs, signal: ending.signal }
        const { queues: claimed = {} } = expectSuccess(
          'claimQueues',
          await watched.api.claimQueues(request, callOptions),
        )
        return Object.values(claimed)
      } catch (thrown) {
        if (ending.signal.aborted) break
        const error = asClientError(thrown)
        const retryInMs = Math.max(fullJitterMs(claimBackoff, failures, random), error.retryAfterMs ?? 0)
        const retry = error.retryable ? { retryInMs } : {}
        emit({ type: 'request_failed', operation: 'claimQueues', groupName, error, ...retry })
        if (!error.retryable) {
          refusal = error
          ending.abort()
        }
        await clock.sleep(retryInMs, ending.signal)
      }
    }
    return undefined
  }

  /** A lease lasts as long as the invocation can, so that it need not be renewed, and ends with it where it is killed. */
  function claimRequest(maxQueues: number, queueIds: readonly number[]) {
    const leftMs = Math.ceil(startedAtMs + timeLimitMs - clock.monotonic())
    const passedOver = queues.passedOver().slice(-limits.maxNamesPerRequest)
    return {
      consumerGroupName: groupName,
      claimant: deps.claimant.slice(0, limits.maxConsumerNameLength),
      maxQueues,
      leaseMs: Math.min(Math.max(leftMs, limits.minLeaseMs), limits.maxLeaseMs),
      topicNames: Object.keys(options.topics),
      holdingQueueIds: queues.heldQueueIds(),
      ...(queueIds.length > 0 && { queueIds: [...queueIds] }),
      ...(passedOver.length > 0 && { exceptQueueIds: passedOver }),
    }
  }
}
