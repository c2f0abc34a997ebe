import { endOf, isDueForDeletion } from '../../../core/log/boundaries.ts'
import type { Batch, BatchHeader } from '../../../core/model.ts'
import type { LogStore } from '../../../core/store.ts'
import type { Dice } from './dice.ts'

/**
 * The log as DynamoDB keeps it: a put is refused only where a batch begins already, so that an appender which tries a
 * place that is no boundary leaves a hole. (SQLite would refuse it, and hide the mistake.)
 */
export type MemoryLog = {
  put(batch: Batch): BatchHeader | undefined
  /** The log as a reader sees it who sees these batches. */
  view(sees: (stored: Stored) => boolean): Pick<LogStore, 'readBatches' | 'readBatchAt' | 'readHeaders'>
  /** Deletes of the batches that are due what it is told to, as TTL does. */
  trim(nowMs: number, chooses: () => boolean): void
  /** Where a queue's log ends. */
  endOf(queueId: number): number
}

export type Stored = { batch: Batch; atMs: number }

export function createMemoryLog(now: () => number): MemoryLog {
  const queues = new Map<number, Stored[]>()
  /** Remembered, since the log itself forgets. */
  const ends = new Map<number, number>()
  const of = (queueId: number) => queues.get(queueId) ?? []

  function put(batch: Batch): BatchHeader | undefined {
    const stored = of(batch.queueId)
    queues.set(batch.queueId, stored)
    let at = stored.length
    for (let before = stored[at - 1]; before && before.batch.base >= batch.base; before = stored[at - 1]) {
      if (before.batch.base === batch.base) return toHeader(before.batch)
      at--
    }
    stored.splice(at, 0, { batch, atMs: now() })
    ends.set(batch.queueId, Math.max(endOf(batch), ends.get(batch.queueId) ?? 1))
  }

  function view(sees: (stored: Stored) => boolean): ReturnType<MemoryLog['view']> {
    const seen = (queueId: number) => of(queueId).flatMap(stored => (sees(stored) ? [stored.batch] : []))
    return {
      async readBatches({ queueId, fromOffset, maxBatches, maxBytes }) {
        const found: Batch[] = []
        let bytes = 0
        for (const batch of seen(queueId)) {
          if (batch.base < fromOffset) continue
          if (found.length === maxBatches || bytes >= maxBytes) break
          found.push(batch)
          bytes += batch.bytes.length
        }
        return found
      },
      readBatchAt: async (queueId, offset) => seen(queueId).findLast(({ base }) => base <= offset),
      async readHeaders({ queueId, fromOffset, direction, limit }) {
        const headers = seen(queueId).map(toHeader)
        if (direction === 'forward') return headers.filter(({ base }) => base >= fromOffset).slice(0, limit)
        return headers
          .filter(({ base }) => base <= fromOffset)
          .reverse()
          .slice(0, limit)
      },
    }
  }

  function trim(nowMs: number, chooses: () => boolean) {
    for (const [queueId, stored] of queues) {
      queues.set(
        queueId,
        stored.filter(({ batch }) => !isDueForDeletion(batch, nowMs) || !chooses()),
      )
    }
  }

  return { put, view, trim, endOf: queueId => ends.get(queueId) ?? 1 }
}

/** How far a replica may be behind. */
const staleMs = 1_000

/** What a reader sees of a replica that is behind: all up to some moment, or of what is recent some and some not. */
export function staleSight(dice: Dice, nowMs: number): (stored: Stored) => boolean {
  if (dice.chance(0.5)) {
    const upToMs = nowMs - dice.random() * staleMs
    return ({ atMs }) => atMs <= upToMs
  }
  return ({ atMs }) => nowMs - atMs > staleMs || dice.chance(0.5)
}

function toHeader({ queueId, base, count, publishId, appendedAtMs, expiresAtMs }: Batch): BatchHeader {
  return { queueId, base, count, publishId, appendedAtMs, expiresAtMs }
}
