/** Where something that starts and stops is; what leads from one to the next is told at `Consumer`. */
export type LifecycleState = 'stopped' | 'starting' | 'running' | 'stopping'

/** `start` and `stop` that may be called in any order, twice, and at once. */
export type Lifecycle = {
  /** Rejects with what opening rejects with; it may be called again then. Resolves early if `stop` overtakes it. */
  start(): Promise<void>
  stop(): Promise<void>
  readonly state: LifecycleState
}

/**
 * States: `stopped` —start→ `starting` —opened→ `running` —stop→ `stopping` —closed→ `stopped`. A stop while starting
 * aborts the opening first. A start while stopping waits for the end of the stop. Calls that ask for what is under way
 * share its promise. `close` is called after every `open`, also after one that failed or was aborted, so it must bear
 * that there is nothing to close.
 */
export function createLifecycle(steps: {
  open(signal: AbortSignal): Promise<void>
  close(): Promise<void>
}): Lifecycle {
  let state: LifecycleState = 'stopped'
  let starting: { done: Promise<void>; abort: AbortController } | undefined
  let stopping: Promise<void> = Promise.resolve()

  async function open(after: Promise<void>, signal: AbortSignal): Promise<void> {
    await after.catch(() => undefined)
    if (signal.aborted) return
    state = 'starting'
    try {
      await steps.open(signal)
    } catch (error) {
      // Whoever stops meanwhile closes as well; otherwise the failed attempt cleans up after itself.
      if (signal.aborted) return
      starting = undefined
      stopping = close()
      await stopping
      throw error
    }
    if (!signal.aborted) state = 'running'
  }

  async function close(after?: Promise<void>): Promise<void> {
    const isOpen = state === 'running'
    state = 'stopping'
    // What runs is stopped within the call itself: a handler that stops its consumer is then the last one.
    if (!isOpen) await after?.catch(() => undefined)
    state = 'stopping'
    try {
      await steps.close()
    } finally {
      state = 'stopped'
    }
  }

  return {
    start() {
      if (!starting) {
        const abort = new AbortController()
        if (state === 'stopped') state = 'starting'
        starting = { abort, done: open(stopping, abort.signal) }
      }
      return starting.done
    },
    stop() {
      if (starting) {
        const { done, abort } = starting
        starting = undefined
        abort.abort()
        stopping = close(done)
      }
      return stopping
    },
    get state() {
      return state
    },
  }
}
