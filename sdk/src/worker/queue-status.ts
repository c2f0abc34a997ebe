import type { Clock } from '../../../core/protocol/clock.ts'
import type { PullActivity } from './pull.ts'

/** What a consumer is doing with one of its queues. Times of the clock are milliseconds since 1970. */
export type QueueStatus = {
  topicName: string
  queueId: number
  /** `paused`: nothing is pulled and handed out. `leaving`: what runs is being finished, for another consumer or a stop. */
  state: 'running' | 'paused' | 'leaving'
  /** The group's stop flag, this consumer's own `pause`, or both. */
  pausedBy: readonly ('stop_flag' | 'consumer')[]
  /**
   * `asking`: a request is under way; `waiting`: the pause of an empty queue; `backing_off`: the pause after a request that
   * failed; `paused`; `full`: as much waits for the handler as may; `ended`.
   */
  pulling: 'asking' | 'waiting' | 'backing_off' | 'paused' | 'full' | 'ended'
  pullingSinceMs: number
  /** When the pause between two pulls ends. */
  pullingUntilMs: number | undefined
  /** When a pull was last answered. */
  lastPullAtMs: number | undefined
  /** How many pulls in a row have failed; 0 if the last one was answered. */
  failedPulls: number
  /** The last offset that was pulled. */
  position: number
  /** The last offset that the service has recorded as done. */
  committed: number
  /** Offsets behind `committed` that were handed out or passed over. */
  uncommitted: number
  /** Messages that wait for a handler. */
  buffered: number
  /** Those of them that wait until they are due, and when the first one is. */
  delayed: number
  nextDueAtMs: number | undefined
  /** Those of them that wait for another one of their key. */
  behindKeys: number
  /** Handler calls that run, wait to be repeated, or whose failures are on their way to the fail topic. */
  running: number
  /** Those of them that have failed. */
  failing: number
  /** The listener `preHandle` has not said yes: it has not answered yet, or has said no and is asked again. */
  isHeld: boolean
  /** Its owners were lost, and its messages are handed out one at a time. */
  isCareful: boolean
  /** When a handler call last ended. */
  lastHandledAtMs: number | undefined
}

/** How a pull loop's activity is told. */
export function pullingStatus(activity: PullActivity, isPaused: boolean, clock: Clock) {
  const { state, sinceMs, forMs } = activity
  const pulling: QueueStatus['pulling'] = state !== 'blocked' ? state : isPaused ? 'paused' : 'full'
  const pullingSinceMs = toWallMs(sinceMs, clock)
  return { pulling, pullingSinceMs, pullingUntilMs: forMs === undefined ? undefined : pullingSinceMs + forMs }
}

/** A time of the monotonic clock as milliseconds since 1970. */
export function toWallMs(monotonicMs: number, clock: Clock): number {
  return Math.round(clock.now() - (clock.monotonic() - monotonicMs))
}
