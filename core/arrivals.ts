import type { Clock } from './protocol/clock.ts'

/**
 * Tells, within one process, whoever waits for a queue's next message or a group's next version that it is there. A mark
 * is taken before looking, so that what arrives between the look and the wait is not missed. Only a hint: waits end by
 * time all the same, and a process that shares nothing with the writers just waits.
 */
export type Arrivals = {
  mark(topics: readonly string[]): Mark
  announce(topic: string): void
  /** The same, but with a gap of `announceGapMs` or more in between: of many within a moment the first and the last are told. */
  announceInTurn(topic: string): void
  /** Resolves once anything was announced since the mark, or after `ms` milliseconds. */
  wait(mark: Mark, ms: number): Promise<'announced' | 'time' | 'closed'>
  /** Ends all waits, and lets nobody wait any more: the process is about to end. */
  close(): void
}
export type Mark = { topics: readonly string[]; seen: readonly number[] }

/**
 * While a group of hundreds is handed around, its versions rise hundreds of times, and each time all of its consumers ask.
 */
export const announceGapMs = 50
/** The more there are to be told, the longer they wait: each asks when it is told, at about this price. */
const perWaiterMs = 1
const longestGapMs = 1_000

export const queueArrival = (queueId: number) => `queue:${queueId}`
export const groupArrival = (groupName: string) => `group:${groupName}`

export function createArrivals(clock: Clock): Arrivals {
  const counts = new Map<string, number>()
  const waiting = new Map<string, Set<AbortController>>()
  let isClosed = false
  const countOf = (topic: string) => counts.get(topic) ?? 0

  const announce = (topic: string) => {
    counts.set(topic, countOf(topic) + 1)
    for (const waiter of waiting.get(topic) ?? []) waiter.abort()
  }
  /** Topics that were announced a moment ago, and whether they are to be again. */
  const turns = new Map<string, { isDue: boolean }>()
  const closing = new AbortController()

  async function takeTurns(topic: string): Promise<void> {
    const turn = { isDue: true }
    turns.set(topic, turn)
    while (turn.isDue && !isClosed) {
      turn.isDue = false
      const waiters = waiting.get(topic)?.size ?? 0
      announce(topic)
      await clock.sleep(Math.max(announceGapMs, Math.min(longestGapMs, waiters * perWaiterMs)), closing.signal)
    }
    turns.delete(topic)
  }

  return {
    mark: topics => ({ topics, seen: topics.map(countOf) }),
    announce,
    announceInTurn(topic) {
      const turn = turns.get(topic)
      if (turn) turn.isDue = true
      else void takeTurns(topic)
    },
    async wait({ topics, seen }, ms) {
      const isAnnounced = () => topics.some((topic, i) => countOf(topic) !== seen[i])
      if (!isClosed && !isAnnounced()) await sleepUntilWoken(topics, ms)
      if (isClosed) return 'closed'
      return isAnnounced() ? 'announced' : 'time'
    },
    close() {
      isClosed = true
      closing.abort()
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
