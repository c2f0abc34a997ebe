import type { Bus } from '../../core/core.ts'
import { logError } from '../../functions/edge/log.ts'

/**
 * EventBridge within the process. A group that changes several times while it is being rebalanced is rebalanced once
 * more, not several times.
 */
export type LocalBus = Pick<Bus, 'groupChanged'> & {
  /** Resolves when nothing that was said is left to do. */
  settled(): Promise<void>
}

export function createLocalBus(
  onGroupChanged: (groupName: string) => Promise<void>,
  /** Comes before the nth run in a row for one group: those who join within it are given their queues together. */
  pause: (run: number) => Promise<void> = async () => {},
): LocalBus {
  const running = new Map<string, Promise<void>>()
  const again = new Set<string>()

  async function run(groupName: string): Promise<void> {
    let runs = 0
    do {
      again.delete(groupName)
      try {
        await onGroupChanged(groupName)
      } catch (error) {
        logError('a group that changed could not be rebalanced', { groupName }, error)
      }
      if (again.has(groupName)) await pause(++runs)
    } while (again.has(groupName))
    running.delete(groupName)
  }

  return {
    async groupChanged(groupName) {
      if (running.has(groupName)) again.add(groupName)
      else running.set(groupName, run(groupName))
    },
    async settled() {
      while (running.size > 0) await Promise.all(running.values())
    },
  }
}
