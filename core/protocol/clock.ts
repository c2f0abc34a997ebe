// The only file in `core` that touches the system's clock and timers.

/** Time as a parameter. What asks for the time or waits takes a `Clock`, so that tests and a simulation can move it. */
export interface Clock {
  /** Wall-clock time, milliseconds since 1970. May step; stands still while a Lambda container is frozen. */
  now(): number
  /** Milliseconds from an arbitrary origin that never go back; for measuring durations. */
  monotonic(): number
  /** Resolves after `ms` milliseconds (24 days at most), or as soon as `signal` aborts (it never rejects: check the signal). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** A greater one overflows, and a timer of it fires at once. */
const longestTimerMs = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep(ms, signal) {
    return new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, Math.min(ms, longestTimerMs))
      signal?.addEventListener('abort', done, { once: true })
    })
  },
}
