import type { Clock } from '../../core/protocol/clock.ts'

/**
 * Lets a loop wait until something happens or some time has passed. One waiter; a `wake` while nobody waits is kept
 * for the next `wait`, so a loop that looks first and waits then misses nothing.
 */
export type Wakeup = {
  wake(): void
  /** Resolves at the next `wake`, or after `ms` milliseconds if given. Never rejects. */
  wait(ms?: number): Promise<void>
}

/** Makes a wake-up that waits by `clock`. */
export function createWakeup(clock: Clock): Wakeup {
  let isWoken = false
  let end: (() => void) | undefined
  return {
    wake() {
      if (!end) isWoken = true
      end?.()
    },
    async wait(ms) {
      if (!isWoken) {
        if (ms === undefined) {
          await new Promise<void>(resolve => {
            end = resolve
          })
        } else {
          const controller = new AbortController()
          end = () => controller.abort()
          await clock.sleep(ms, controller.signal)
        }
        end = undefined
      }
      isWoken = false
    },
  }
}
