/** What runs without a caller who waits for it: deliveries and asynchronous invocations, but not what waits for its time. */
export type Activity = {
  /** Counts a piece of work until it has ended. */
  during(work: () => Promise<void>): void
  /** Resolves when nothing runs. */
  settled(): Promise<void>
}

export function createActivity(onFailure: (error: unknown) => void): Activity {
  const running = new Set<Promise<void>>()
  return {
    during(work) {
      const promise: Promise<void> = work()
        .catch(onFailure)
        .finally(() => running.delete(promise))
      running.add(promise)
    },
    async settled() {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
