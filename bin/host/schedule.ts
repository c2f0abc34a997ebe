import type { Clock } from '../../core/protocol/clock.ts'

/** Runs `act` every `everyMs` milliseconds until stopped; the next run waits for the end of the one before. */
export function createSchedule(clock: Clock, everyMs: number, act: () => Promise<void>) {
  const stopping = new AbortController()
  async function run(): Promise<void> {
    for (;;) {
      await clock.sleep(everyMs, stopping.signal)
      if (stopping.signal.aborted) return
      await act()
    }
  }
  const running = run()
  return {
    async stop(): Promise<void> {
      stopping.abort()
      await running
    },
  }
}
