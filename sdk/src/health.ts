import type { Clock } from '../../core/protocol/clock.ts'
import type { QueueStatus } from './worker/queue-status.ts'

/** Whether a consumer can work, fit for a liveness probe. */
export type ConsumerHealth = {
  /**
   * False only where the consumer cannot work by itself any more, or a restart would help: it was replaced, the service has
   * answered none of its heartbeats for longer than a session (30 s), or a request does not end though its time is over.
   * An empty or paused queue, a slow or failing handler, a service that refuses now and then, and a consumer that was
   * stopped or has not joined yet are no illness.
   */
  isHealthy: boolean
  /** What is wrong, for people to read. */
  reasons: readonly string[]
}

/** What health is judged by. */
export type HealthFacts = {
  /** Another consumer has the place of this one. */
  isReplaced: boolean
  /** Since when the service has not answered, in milliseconds; undefined for a consumer that is not meant to be a member. */
  silentForMs: number | undefined
  queues: readonly Pick<QueueStatus, 'queueId' | 'pulling' | 'pullingSinceMs'>[]
  clock: Clock
  requestTimeoutMs: number
  maxPullWaitMs: number
}

/** After so long the service gives a consumer up. */
const sessionMs = 30_000
/** A request that ends late is no illness; one that is this late will not end. */
const patienceMs = 60_000

/** Judges, from facts. */
export function judgeHealth(facts: HealthFacts): ConsumerHealth {
  const { isReplaced, silentForMs = 0, queues, clock, requestTimeoutMs, maxPullWaitMs } = facts
  const reasons: string[] = []
  if (isReplaced) reasons.push('another consumer has taken its instanceId')
  if (silentForMs > sessionMs)
    reasons.push(
      `no heartbeat has been answered for ${inSeconds(silentForMs)}; a session lasts ${inSeconds(sessionMs)}`,
    )
  for (const { queueId, pulling, pullingSinceMs } of queues) {
    const sinceMs = clock.now() - pullingSinceMs
    if (pulling !== 'asking' || sinceMs <= requestTimeoutMs + maxPullWaitMs + patienceMs) continue
    reasons.push(`a pull of queue ${queueId} has not ended for ${inSeconds(sinceMs)}`)
  }
  return { isHealthy: reasons.length === 0, reasons }
}

const inSeconds = (ms: number) => `${Math.round(ms / 1000)} s`
