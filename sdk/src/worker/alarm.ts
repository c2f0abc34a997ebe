import type { Clock } from '../../../core/protocol/clock.ts'

/** One timer for many things: it rings at the earliest time that was set. */
export type Alarm = {
  /** `atMs`: by the monotonic clock. Changes nothing if it rings before that anyway. */
  set(atMs: number): void
  /** Rings no more. */
  close(): void
}

/**
 * What has become pointless is not taken back: as a rule something else is set before it rings, and a timer for each handler
 * call would cost more than the call. So whoever hears it looks what is due, and sets the next time. It never rings early.
 */
export function createAlarm(clock: Clock, ring: () => void): Alarm {
  let armedForMs = Number.POSITIVE_INFINITY
  let sleeping = new AbortController()
  let isClosed = false

  async function arm(atMs: number) {
    sleeping.abort()
    sleeping = new AbortController()
    const { signal } = sleeping
    armedForMs = atMs
    for (let leftMs = atMs - clock.monotonic(); leftMs > 0; leftMs = atMs - clock.monotonic()) {
      await clock.sleep(leftMs, signal)
      if (signal.aborted) return
    }
    armedForMs = Number.POSITIVE_INFINITY
    ring()
  }

  return {
    set(atMs) {
      if (atMs < armedForMs && !isClosed) void arm(atMs)
    },
    close() {
      isClosed = true
      sleeping.abort()
    },
  }
}
