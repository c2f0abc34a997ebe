import { type Backoff, fullJitterMs } from '../../../core/protocol/backoff.ts'
import type { Clock } from '../../../core/protocol/clock.ts'
import type { PulledBatch, PullResponse } from '../../../core/protocol/pull.ts'
import { asClientError, type PmqClientError } from '../errors.ts'
import { createWakeup } from '../wakeup.ts'

/** What the pull loop is made of. */
export type PullDeps = {
  /** Asks for what is behind `position`. Rejects if there is no good answer. */
  ask(position: number, signal: AbortSignal): Promise<PullResponse>
  /** Takes a batch from its message `firstIndex` on. `serviceNowMs`: the service's clock, where the answer tells it. */
  add(batch: PulledBatch, firstIndex: number, serviceNowMs: number | undefined): void
  wantsMore(): boolean
  /** An answer brought nothing new, or there is no room for more. */
  onRest(): void
  onSkipped(firstOffset: number, count: number): void
  onFailed(error: PmqClientError, retryInMs: number): void
  clock: Clock
  random: () => number
  /** How much longer each pause of an empty queue is than the one before. */
  pullDeltaTimeMs: number
}

/** Pulls one queue, one request at a time. */
export type Pull = {
  /** Pulls until `stop`. Never rejects. */
  run(): Promise<void>
  /** Says that the buffer may want more again. */
  roomChanged(): void
  /** A paused loop lets a request under way finish and keeps what it brings. */
  setPaused(isPaused: boolean): void
  setMaxPause(ms: number): void
  /** Says that there may be messages: an empty queue is asked at once. */
  hint(): void
  /** Ends the loop and gives up the request under way. */
  stop(): void
  /** The last offset that was pulled. */
  readonly position: number
  /** The last answer brought nothing new. */
  readonly isAtEnd: boolean
  /** When a pull was last answered, milliseconds since 1970. */
  readonly lastPullAtMs: number | undefined
  /** How many pulls in a row have failed. */
  readonly failures: number
  readonly activity: PullActivity
}

/**
 * What a pull loop does: `asking`: a request is under way; `waiting`: the pause of an empty queue; `backing_off`: the
 * pause after a request that failed; `blocked`: it is paused, or the buffer wants no more; `ended`: it does
 * not run.
 */
export type PullActivity = {
  state: 'asking' | 'waiting' | 'backing_off' | 'blocked' | 'ended'
  /** When that began, by the monotonic clock. */
  sinceMs: number
  /** How long it lasts at most, in milliseconds. */
  forMs?: number
}

/** The first pause of an empty queue: it keeps a service that answers at once from being asked in a hot loop. */
const firstPauseMs = 50
const failureBackoff: Backoff = { baseMs: 200, maxMs: 10_000 }

/**
 * Asks again at once while there are messages. A pause begins when the question is asked, so one that the service held
 * has been waited for already. Whatever goes wrong, the loop pauses and goes on: nothing but `stop` ends it.
 */
export function createPull(deps: PullDeps, startOffset: number, maxPauseMs: number): Pull {
  const { clock, random } = deps
  const wakeup = createWakeup(clock)
  const asking = new AbortController()
  let position = startOffset
  let lastPullAtMs: number | undefined
  let failures = 0
  let isPaused = false
  let isHinted = false
  let isAtEnd = false
  let activity: PullActivity = { state: 'ended', sinceMs: clock.monotonic() }

  function enter(state: PullActivity['state'], forMs?: number) {
    activity = { state, sinceMs: clock.monotonic(), ...(forMs !== undefined && { forMs }) }
  }

  async function run() {
    let pauseMs = firstPauseMs
    let version: number | undefined
    let wasFruitless = false
    while (!asking.signal.aborted) {
      if (isPaused || !deps.wantsMore()) {
        enter('blocked')
        deps.onRest()
        await wakeup.wait()
        continue
      }
      const wasHinted = isHinted
      isHinted = false
      enter('asking')
      const askedAtMs = clock.monotonic()
      const restOf = (ms: number) => ms - (clock.monotonic() - askedAtMs)
      try {
        const answer = await deps.ask(position, asking.signal)
        if (asking.signal.aborted) break
        const hasMoved = accept(answer)
        lastPullAtMs = clock.now()
        failures = 0
        // A hold also ends when the group has changed, which says nothing of how long the queue will stay empty.
        const hasNews = answer.version !== undefined && answer.version !== version
        if (hasMoved || hasNews || wasHinted) pauseMs = firstPauseMs
        version = answer.version ?? version
        wasFruitless = !hasMoved && wasHinted
        isAtEnd = !hasMoved
        if (hasMoved) continue
        deps.onRest()
        const restMs = restOf(Math.min(pauseMs, maxPauseMs))
        pauseMs = Math.min(pauseMs + deps.pullDeltaTimeMs, maxPauseMs)
        if (!isHinted) await pause('waiting', restMs)
        // Hints that come without an end must not make a hot loop where there is nothing.
        if (isHinted && wasFruitless) await pause('waiting', restOf(firstPauseMs))
      } catch (thrown) {
        if (asking.signal.aborted) break
        const error = asClientError(thrown)
        const retryInMs = Math.max(
          firstPauseMs,
          fullJitterMs(failureBackoff, failures++, random),
          error.retryAfterMs ?? 0,
        )
        deps.onFailed(error, retryInMs)
        await pause('backing_off', retryInMs)
      }
    }
    enter('ended')
  }

  async function pause(state: 'waiting' | 'backing_off', ms: number) {
    if (ms <= 0) return
    enter(state, ms)
    await wakeup.wait(ms)
  }

  /** True if there was something new. */
  function accept(answer: PullResponse): boolean {
    const before = position
    for (const batch of answer.batches ?? []) {
      const gap = batch.offset - position - 1
      if (gap > 0) deps.onSkipped(position + 1, gap)
      const firstIndex = Math.max(0, -gap)
      if (firstIndex >= batch.msgs.length) continue
      deps.add(batch, firstIndex, answer.nowMs)
      position = batch.offset + batch.msgs.length - 1
    }
    return position > before
  }

  return {
    run,
    roomChanged() {
      if (activity.state === 'blocked') wakeup.wake()
    },
    setPaused(paused) {
      isPaused = paused
      if (activity.state === 'blocked') wakeup.wake()
    },
    hint() {
      if (activity.state === 'waiting' && !isHinted) wakeup.wake()
      isHinted = true
    },
    setMaxPause(ms) {
      maxPauseMs = ms
    },
    stop() {
      asking.abort()
      wakeup.wake()
    },
    get position() {
      return position
    },
    get isAtEnd() {
      return isAtEnd
    },
    get lastPullAtMs() {
      return lastPullAtMs
    },
    get failures() {
      return failures
    },
    get activity() {
      return activity
    },
  }
}
