import type { Clock } from '../../../core/protocol/clock.ts'
import type { Scheduler, Timer } from './scheduler.ts'

/**
 * A process of the simulated world: a container of the service, or a program with the SDK in it. It runs on only when
 * something is delivered to it, a wake-up of its clock or an answer from outside. So a dead one is one to which nothing
 * is delivered any more, and a stopped one (SIGSTOP) one to which everything is delivered late.
 */
export type SimProcess = {
  readonly name: string
  readonly isAlive: boolean
  readonly isPaused: boolean
  readonly clock: Clock
  /** Lets `act` happen within the process: at once, when it wakes, or never. */
  deliver(act: () => void): void
  /** Lets `act` happen within the process when `ms` milliseconds have passed. */
  after(ms: number, act: () => void): Timer
  kill(): void
  /** It dies in place of the `deliveries`-th thing that would happen in it: at any of its awaits. */
  dieWithin(deliveries: number): void
  onKilled(act: () => void): void
  pause(): void
  resume(): void
  /** Sets the wall clock forwards or back. */
  stepClock(ms: number): void
}

/** What the clocks of the service say at the beginning, milliseconds since 1970. */
export const startMs = Date.UTC(2026, 10, 30)

export function createProcess(scheduler: Scheduler, name: string, skewMs = 0): SimProcess {
  const held: (() => void)[] = []
  const killed: (() => void)[] = []
  let isAlive = true
  let isPaused = false
  let deliveriesLeft = Number.POSITIVE_INFINITY

  function deliver(act: () => void) {
    if (!isAlive) return
    if (isPaused) return void held.push(act)
    if (--deliveriesLeft < 0) return kill()
    act()
  }

  function kill() {
    if (!isAlive) return
    isAlive = false
    held.length = 0
    for (const act of killed) act()
  }

  const after = (ms: number, act: () => void) => scheduler.after(ms, () => deliver(act))

  function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const wake = () => {
        timer.cancel()
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const timer = after(ms, wake)
      signal?.addEventListener('abort', wake, { once: true })
    })
  }

  return {
    name,
    get isAlive() {
      return isAlive
    },
    get isPaused() {
      return isPaused
    },
    clock: { now: () => Math.floor(startMs + skewMs + scheduler.nowMs), monotonic: () => scheduler.nowMs, sleep },
    deliver,
    after,
    kill,
    dieWithin(deliveries) {
      deliveriesLeft = deliveries
    },
    onKilled: act => void killed.push(act),
    pause() {
      isPaused = true
    },
    resume() {
      if (!isPaused) return
      isPaused = false
      // One after the other, as they came; what comes from now on comes behind them.
      for (const act of held.splice(0)) scheduler.after(0, () => deliver(act))
    },
    stepClock(ms) {
      skewMs += ms
    },
  }
}
