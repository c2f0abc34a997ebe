import { type Clock, systemClock } from '../../core/protocol/clock.ts'

export type ManualClock = Clock & {
  /** Lets time pass: whoever sleeps until then wakes, in order of time. */
  advance(ms: number): void
  /** Steps the wall clock alone, forwards or back; nobody wakes. */
  step(ms: number): void
  /** How many wait for a time to come. */
  readonly sleeping: number
}

/** A clock that stands still until it is told to go on. */
export function createManualClock(startMs = 1_000_000): ManualClock {
  let wall = startMs
  let elapsed = 0
  const sleepers = new Set<{ atMs: number; wake: () => void }>()
  return {
    // Whole milliseconds, as the system's clock tells them, also where somebody sleeps for a fraction of one.
    now: () => Math.floor(wall),
    monotonic: () => elapsed,
    sleep(ms, signal) {
      return new Promise(resolve => {
        if (signal?.aborted || ms <= 0) return resolve()
        const wake = () => {
          sleepers.delete(sleeper)
          signal?.removeEventListener('abort', wake)
          resolve()
        }
        const sleeper = { atMs: elapsed + ms, wake }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', wake, { once: true })
      })
    },
    advance(ms) {
      const untilMs = elapsed + ms
      for (;;) {
        const [next] = [...sleepers].filter(sleeper => sleeper.atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)
        if (!next) break
        wall += next.atMs - elapsed
        elapsed = next.atMs
        next.wake()
      }
      wall += untilMs - elapsed
      elapsed = untilMs
    },
    step(ms) {
      wall += ms
    },
    get sleeping() {
      return sleepers.size
    },
  }
}

/**
 * The system's clock, which can be put ahead: for what speaks over real sockets, whose time nobody can hold. Who sleeps
 * sleeps on, so it is put ahead while nobody does.
 */
export function createRunningClock(): ManualClock {
  let aheadMs = 0
  let steppedMs = 0
  return {
    now: () => systemClock.now() + aheadMs + steppedMs,
    monotonic: () => systemClock.monotonic() + aheadMs,
    sleep: systemClock.sleep,
    advance(ms) {
      aheadMs += ms
    },
    step(ms) {
      steppedMs += ms
    },
    sleeping: 0,
  }
}
