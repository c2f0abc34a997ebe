import { createLru } from '../lru.ts'
import type { BatchHeader } from '../model.ts'

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
}

export const boundaryLifeMs = 5 * 60_000
const maxRemembered = 10_000

export function createBoundaries(now: () => number): Boundaries {
  const known = createLru<number, { nextOffset: number; learnedAtMs: number }>(maxRemembered)
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
  }
}

/** How long behind the end of a batch's retention TTL may delete it: a day, so that the head's checkpoint may be late. */
export const ttlDelayMs = 86_400_000

/** TTL deletes in no order: behind a tail that is due for deletion, newer batches may be gone already. */
export const isDueForDeletion = (batch: BatchHeader, nowMs: number) => nowMs >= batch.expiresAtMs + ttlDelayMs

export const endOf = (batch: { base: number; count: number }) => batch.base + batch.count

/** Whether a log with this tail goes on at `base`: the rule of a store that sees its tail while it writes. */
export function isBoundary(tail: BatchHeader | undefined, base: number, nowMs: number): boolean {
  if (tail === undefined || base === endOf(tail)) return true
  return base > endOf(tail) && isDueForDeletion(tail, nowMs)
}
