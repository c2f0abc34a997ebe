import { type Clock, systemClock } from '../core/protocol/clock.ts'

/** The system's clock, which can be set forward: what was waiting for a time that has come is woken. */
export type MovableClock = Clock & {
  /** How far it is ahead of the system's, in milliseconds. */
  readonly aheadMs: number
  advance(ms: number): void
}

export function createMovableClock(): MovableClock {
  let aheadMs = 0
  const moved = new EventTarget()

  return {
    get aheadMs() {
      return aheadMs
    },
    now: () => systemClock.now() + aheadMs,
    monotonic: () => systemClock.monotonic() + aheadMs,
    async sleep(ms, signal) {
      const endsAtMs = this.monotonic() + ms
      for (let leftMs = ms; leftMs > 0 && !signal?.aborted; leftMs = endsAtMs - this.monotonic()) {
        const woken = new AbortController()
        const wake = () => woken.abort()
        moved.addEventListener('moved', wake)
        signal?.addEventListener('abort', wake)
        await systemClock.sleep(leftMs, woken.signal)
        moved.removeEventListener('moved', wake)
        signal?.removeEventListener('abort', wake)
      }
    },
    advance(ms) {
      aheadMs += ms
      moved.dispatchEvent(new Event('moved'))
    },
  }
}
