import { type Backoff, fullJitterMs } from '../../core/protocol/backoff.ts'
import type { Clock } from '../../core/protocol/clock.ts'

/** What heartbeats are made of. */
export type HeartbeatDeps = {
  /** Sends one. Resolves with the seconds that the service wants between two; rejects if there is no good answer. */
  send(signal: AbortSignal): Promise<unknown>
  onFailed(thrown: unknown, retryInMs: number): void
  clock: Clock
  random: () => number
  /** The longest time between two, in milliseconds. */
  intervalMs: number
}

/** A heartbeat that fails is repeated well within the 30 s after which the service gives a consumer up. */
const failureBackoff: Backoff = { baseMs: 500, maxMs: 4_000 }
/** Soon, as PMQ's client does: the answer says how often the service wants to hear of a consumer. */
const firstPauseMs = 1_000

/** Sends heartbeats until `signal` aborts. Never rejects. */
export async function sendHeartbeats(deps: HeartbeatDeps, signal: AbortSignal): Promise<void> {
  const { clock, random, intervalMs } = deps
  let pauseMs = Math.min(intervalMs, firstPauseMs)
  for (let failures = 0; ; ) {
    await clock.sleep(pauseMs, signal)
    if (signal.aborted) return
    try {
      const askedSeconds = await deps.send(signal)
      failures = 0
      pauseMs = pauseWithin(askedSeconds, intervalMs)
    } catch (thrown) {
      if (signal.aborted) return
      pauseMs = Math.min(intervalMs, 100 + fullJitterMs(failureBackoff, failures++, random))
      deps.onFailed(thrown, pauseMs)
    }
  }
}

/** What the service asks for, within bounds: whatever it says, heartbeats neither flood it nor end. */
function pauseWithin(askedSeconds: unknown, longestMs: number): number {
  const askedMs = typeof askedSeconds === 'number' && askedSeconds >= 1 ? askedSeconds * 1000 : longestMs
  return Math.min(longestMs, askedMs)
}
