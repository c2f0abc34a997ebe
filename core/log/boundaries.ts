import { LRUCache } from 'lru-cache'

/**
 * Remembers, for one container, where each queue's log ends, so that an append needs no read.
 *
 * A boundary becomes free again when the batch behind it is trimmed; whoever remembered it for longer than that batch
 * lives would hand out its offsets a second time. So a boundary is forgotten after five minutes of wall-clock time (a
 * frozen container's monotonic clock may stand still), or when the clock has gone back. Retention is never below an hour.
 */
export type Boundaries = {
  get(queueId: number): number | undefined
  /** `asOfMs`: the time before the request that proved the boundary was sent. */
  set(queueId: number, nextOffset: number, asOfMs: number): void
  forget(queueId: number): void
}

export const boundaryLifeMs = 5 * 60_000
const maxRemembered = 10_000

export function createBoundaries(now: () => number): Boundaries {
  const known = new LRUCache<number, { nextOffset: number; learnedAtMs: number }>({ max: maxRemembered })
  return {
    get(queueId) {
      const entry = known.get(queueId)
      if (entry === undefined) return undefined
      const ageMs = now() - entry.learnedAtMs
      if (ageMs >= 0 && ageMs < boundaryLifeMs) return entry.nextOffset
      known.delete(queueId)
      return undefined
    },
    set(queueId, nextOffset, asOfMs) {
      known.set(queueId, { nextOffset, learnedAtMs: asOfMs })
    },
    forget(queueId) {
      known.delete(queueId)
    },
  }
}
