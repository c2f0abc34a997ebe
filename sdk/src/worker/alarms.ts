import type { Clock } from '../../../core/protocol/clock.ts'

/** Rings for many things at their times, with one timer for all of them. */
export type Alarms<Thing> = {
  /** `atMs`: by the monotonic clock. A later `set` of the same thing takes the place of this one. */
  set(thing: Thing, atMs: number): void
  clear(thing: Thing): void
  /** Rings no more. */
  close(): void
}

/**
 * The timer runs on when what it was for is cleared: as a rule something else is set before it ends, and a timer of its
 * own for each handler call would cost more than the call. It never rings early.
 */
export function createAlarms<Thing>(clock: Clock, ring: (thing: Thing) => void): Alarms<Thing> {
  const times = new Map<Thing, number>()
  let armedForMs = Number.POSITIVE_INFINITY
  let sleeping = new AbortController()
  let isClosed = false

  async function arm(atMs: number) {
    sleeping.abort()
    sleeping = new AbortController()
    const { signal } = sleeping
    armedForMs = atMs
    await clock.sleep(Math.max(0, atMs - clock.monotonic()), signal)
    if (signal.aborted) return
    armedForMs = Number.POSITIVE_INFINITY
    const nowMs = clock.monotonic()
    const due = [...times].filter(([, dueAtMs]) => dueAtMs <= nowMs)
    for (const [thing] of due) times.delete(thing)
    for (const [thing] of due) ring(thing)
    armForNext()
  }

  function armForNext() {
    const nextMs = Math.min(...times.values())
    if (!isClosed && nextMs < armedForMs) void arm(nextMs)
  }

  return {
    set(thing, atMs) {
      if (isClosed) return
      times.set(thing, atMs)
      if (atMs < armedForMs) void arm(atMs)
    },
    clear(thing) {
      times.delete(thing)
    },
    close() {
      isClosed = true
      times.clear()
      sleeping.abort()
    },
  }
}
