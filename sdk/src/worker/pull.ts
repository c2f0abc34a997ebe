import { type Backoff, fullJitterMs } from '../../../core/protocol/backoff.ts'
import type { Clock } from '../../../core/protocol/clock.ts'
import type { PulledBatch, PullResponse } from '../../../core/protocol/pull.ts'
import { asClientError, type PmqClientError } from '../errors.ts'
import { createWakeup } from '../wakeup.ts'

/** What the pull loop is made of. */
export type PullDeps = {
  /** Asks for what is behind `position`. Rejects if there is no good answer. */
  ask(position: number, signal: AbortSignal): Promise<PullResponse>
  /** Takes a batch from its message `firstIndex` on. */
  add(batch: PulledBatch, firstIndex: number): void
  wantsMore(): boolean
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
  /** Ends the loop and gives up the request under way. */
  stop(): void
  /** The last offset that was pulled. */
  readonly position: number
  /** When a pull was last answered, milliseconds since 1970. */
  readonly lastPullAtMs: number | undefined
  /** How many pulls in a row have failed. */
  readonly failures: number
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
  let isBlocked = false

  async function run() {
    let pauseMs = firstPauseMs
    let version: number | undefined
    while (!asking.signal.aborted) {
      if (isPaused || !deps.wantsMore()) {
        isBlocked = true
        await wakeup.wait()
        isBlocked = false
        continue
      }
      const askedAtMs = clock.monotonic()
      try {
        const answer = await deps.ask(position, asking.signal)
        if (asking.signal.aborted) return
        const hasMoved = accept(answer)
        lastPullAtMs = clock.now()
        failures = 0
        // A hold also ends when the group has changed, which says nothing of how long the queue will stay empty.
        const hasNews = answer.version !== undefined && answer.version !== version
        if (hasMoved || hasNews) pauseMs = firstPauseMs
        version = answer.version ?? version
        if (hasMoved) continue
        const restMs = Math.min(pauseMs, maxPauseMs) - (clock.monotonic() - askedAtMs)
        pauseMs = Math.min(pauseMs + deps.pullDeltaTimeMs, maxPauseMs)
        if (restMs > 0) await wakeup.wait(restMs)
      } catch (thrown) {
        if (asking.signal.aborted) return
        const error = asClientError(thrown)
        const retryInMs = Math.max(
          firstPauseMs,
          fullJitterMs(failureBackoff, failures++, random),
          error.retryAfterMs ?? 0,
        )
        deps.onFailed(error, retryInMs)
        await wakeup.wait(retryInMs)
      }
    }
  }

  /** True if there was something new. */
  function accept(answer: PullResponse): boolean {
    const before = position
    for (const batch of answer.batches ?? []) {
      const gap = batch.offset - position - 1
      if (gap > 0) deps.onSkipped(position + 1, gap)
      const firstIndex = Math.max(0, -gap)
      if (firstIndex >= batch.msgs.length) continue
      deps.add(batch, firstIndex)
      position = batch.offset + batch.msgs.length - 1
    }
    return position > before
  }

  return {
    run,
    roomChanged() {
      if (isBlocked) wakeup.wake()
    },
    setPaused(paused) {
      isPaused = paused
      if (isBlocked) wakeup.wake()
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
    get lastPullAtMs() {
      return lastPullAtMs
    },
    get failures() {
      return failures
    },
  }
}
