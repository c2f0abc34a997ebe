import type { Clock } from './protocol/clock.ts'

/**
 * Tells, within one process, whoever waits for a queue's next message or a group's next version that it is there. A mark
 * is taken before looking, so that what arrives between the look and the wait is not missed. Only a hint: waits end by
 * time all the same, and a process that shares nothing with the writers just waits.
 */
export type Arrivals = {
  mark(topics: readonly string[]): Mark
  announce(topic: string): void
  /** Resolves once anything was announced since the mark, or after `ms` milliseconds. */
  wait(mark: Mark, ms: number): Promise<'announced' | 'time' | 'closed'>
  /** Ends all waits, and lets nobody wait any more: the process is about to end. */
  close(): void
}
export type Mark = { topics: readonly string[]; seen: readonly number[] }

export const queueArrival = (queueId: number) => `queue:${queueId}`
export const groupArrival = (groupName: string) => `group:${groupName}`

export function createArrivals(clock: Clock): Arrivals {
  const counts = new Map<string, number>()
  const waiting = new Map<string, Set<AbortController>>()
  let isClosed = false
  const countOf = (topic: string) => counts.get(topic) ?? 0

  return {
    mark: topics => ({ topics, seen: topics.map(countOf) }),
    announce(topic) {
      counts.set(topic, countOf(topic) + 1)
      for (const waiter of waiting.get(topic) ?? []) waiter.abort()
    },
    async wait({ topics, seen }, ms) {
      const isAnnounced = () => topics.some((topic, i) => countOf(topic) !== seen[i])
      if (!isClosed && !isAnnounced()) await sleepUntilWoken(topics, ms)
      if (isClosed) return 'closed'
      return isAnnounced() ? 'announced' : 'time'
    },
    close() {
      isClosed = true
      for (const waiters of waiting.values()) for (const waiter of waiters) waiter.abort()
    },
  }

  async function sleepUntilWoken(topics: readonly string[], ms: number): Promise<void> {
    const waiter = new AbortController()
    for (const topic of topics) {
      const waiters = waiting.get(topic) ?? new Set()
      waiting.set(topic, waiters.add(waiter))
    }
    await clock.sleep(ms, waiter.signal)
    for (const topic of topics) {
      const waiters = waiting.get(topic)
      waiters?.delete(waiter)
      if (waiters?.size === 0) waiting.delete(topic)
    }
  }
}
