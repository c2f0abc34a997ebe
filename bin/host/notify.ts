import type { Core } from '../../core/core.ts'
import type { Notice } from '../../core/notices.ts'
import { logError } from '../../functions/edge/log.ts'
import type { Job } from '../../functions/edge/notify/jobs.ts'
import { openNotifier } from '../../functions/edge/notify/open-notifier.ts'

/** What a rule and a queue's delay do on AWS: `QueueBusy` is heard after whatever was appended while it was said. */
const busyDelayMs = 1_000
/** As Lambda and SQS do it, what fails is tried again. */
const retryDelayMs = 5_000
const maxTries = 5
/** How long what is being sent may take to end when the host stops. */
const drainMs = 2_000
/** As long as the function may run. */
const timeLimitMs = 90_000

export type LocalNotify = {
  tell(notice: Notice): Promise<void>
  /** Ends in order: what is being sent is sent, and nothing is begun any more. The tick tells of what was left, when it runs again. */
  stop(): Promise<void>
}

/** The notify function within the process: nobody waits for what it does, and its jobs are timers. */
export function createLocalNotify(core: Core): LocalNotify {
  const running = new Set<Promise<void>>()
  const stopping = new AbortController()
  const jobs = { schedule: async (job: Job, delayMs: number) => later(delayMs, () => notifier.run(job, timeLimitMs)) }
  const notifier = openNotifier(core, { network: core.settings.targets.network, jobs })

  function later(delayMs: number, act: () => Promise<void>, tries = 1): void {
    const run = async () => {
      if (delayMs > 0) await core.clock.sleep(delayMs, stopping.signal)
      if (stopping.signal.aborted) return
      try {
        await act()
      } catch (error) {
        logError('a target could not be told', { tries }, error)
        if (tries < maxTries) later(retryDelayMs, act, tries + 1)
      }
    }
    const promise = run().finally(() => running.delete(promise))
    running.add(promise)
  }

  return {
    async tell(notice) {
      later(notice.type === 'QueueBusy' ? busyDelayMs : 0, () => notifier.hear(notice, timeLimitMs))
    },
    async stop() {
      stopping.abort()
      const drained = new AbortController()
      await Promise.race([Promise.all(running), core.clock.sleep(drainMs, drained.signal)])
      drained.abort()
      // What is still under way has no answer then, and is over.
      notifier.close()
      await Promise.all(running)
    },
  }
}
