import type { Clock } from '../../core/protocol/clock.ts'

/** A clock that moves only when told. Between two wake-ups everything that can go on has gone on. */
export type ManualClock = Clock & {
  /** Lets `ms` milliseconds pass. */
  advance(ms: number): Promise<void>
  /** Lets time pass, wake-up by wake-up, until the condition holds; fails if it does not within `ms`. */
  advanceUntil(condition: () => boolean, ms?: number): Promise<void>
  /** How many wait for a time to come. */
  readonly sleeping: number
}

export function createManualClock(): ManualClock {
  const startMs = Date.UTC(2026, 10, 30)
  let elapsedMs = 0
  const sleepers = new Set<{ atMs: number; wake: () => void }>()

  async function wakeNext(untilMs: number): Promise<boolean> {
    await settle()
    const due = [...sleepers].filter(({ atMs }) => atMs <= untilMs)
    if (due.length === 0) return false
    elapsedMs = Math.min(...due.map(({ atMs }) => atMs))
    for (const { atMs, wake } of due) if (atMs === elapsedMs) wake()
    return true
  }

  return {
    now: () => startMs + elapsedMs,
    monotonic: () => elapsedMs,
    sleep(ms, signal) {
      return new Promise(resolve => {
        if (signal?.aborted) return resolve()
        const wake = () => {
          sleepers.delete(sleeper)
          signal?.removeEventListener('abort', wake)
          resolve()
        }
        const sleeper = { atMs: elapsedMs + Math.max(0, ms), wake }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', wake, { once: true })
      })
    },
    async advance(ms) {
      const untilMs = elapsedMs + ms
      while (await wakeNext(untilMs)) {
        // Each wake-up may bring new sleepers.
      }
      elapsedMs = untilMs
      await settle()
    },
    async advanceUntil(condition, ms = 60_000) {
      const untilMs = elapsedMs + ms
      await settle()
      while (!condition()) {
        if (await wakeNext(untilMs)) await settle()
        else throw new Error(`the condition does not hold within ${ms} ms: ${condition}`)
      }
    },
    get sleeping() {
      return sleepers.size
    },
  }
}

/** Lets everything go on that does not wait for a time: some turns of the event loop. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await new Promise(resolve => setImmediate(resolve))
}

/** Chance that repeats itself: the same seed gives the same numbers. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
