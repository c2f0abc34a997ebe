import type { ConsumerListeners } from '../consumer-listeners.ts'

/** Counts what handlers do, and calls the application's own listeners besides. */
export function createTally(given: ConsumerListeners) {
  const tally = { handled: 0, failed: 0 }
  const listeners: ConsumerListeners = {
    ...given,
    postHandle(messages, context, result) {
      if (result.outcome === 'done' || result.outcome === 'failed') {
        tally.failed += result.failed.length
        tally.handled += messages.length - result.failed.length
      }
      return given.postHandle?.(messages, context, result)
    },
  }
  return { tally, listeners }
}
