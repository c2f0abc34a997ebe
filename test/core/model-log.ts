import { endOf, isBoundary } from '../../core/log/boundaries.ts'
import type { Batch, BatchHeader } from '../../core/model.ts'
import type { AppendOutcome, LogStore } from '../../core/store.ts'
import { headerOf } from '../store/contract.ts'

/** The log of one queue in memory, as a log store without its promises. */
export type ModelLog = {
  /** By their bases. */
  batches: Map<number, Batch>
  /** Put-if-absent, as DynamoDB does it. */
  put(batch: Batch): AppendOutcome
  /** Put where the log ends, as SQLite does it. */
  putAtEnd(batch: Batch): AppendOutcome
  headers(query: Pick<Parameters<LogStore['readHeaders']>[0], 'fromOffset' | 'direction' | 'limit'>): BatchHeader[]
  /** In order of their bases. */
  list(): Batch[]
}

export function createModelLog(batches: Map<number, Batch> = new Map()): ModelLog {
  const list = () => [...batches.values()].sort((a, b) => a.base - b.base)
  function put(batch: Batch): AppendOutcome {
    const winner = batches.get(batch.base)
    if (winner) return { outcome: 'taken', winner: headerOf(winner) }
    batches.set(batch.base, batch)
    return { outcome: 'stored' }
  }
  return {
    batches,
    list,
    put,
    putAtEnd(batch) {
      const tail = list().at(-1)
      if (!tail || isBoundary(tail, batch.base, batch.appendedAtMs)) return put(batch)
      return { outcome: 'taken', winner: headerOf(batches.get(batch.base) ?? tail) }
    },
    headers({ fromOffset, direction, limit }) {
      const isForward = direction === 'forward'
      const found = list().filter(({ base }) => (isForward ? base >= fromOffset : base <= fromOffset))
      return (isForward ? found : found.reverse()).slice(0, limit).map(headerOf)
    },
  }
}

/** The log as a store that shows every write at once, to everybody. */
export function modelStore(log: ModelLog, options: { appendsInOrder?: boolean } = {}): LogStore {
  const { appendsInOrder = false } = options
  return {
    appendsInOrder,
    appendBatch: async batch => (appendsInOrder ? log.putAtEnd(batch) : log.put(batch)),
    readBatches: async ({ fromOffset, maxBatches }) =>
      log
        .list()
        .filter(({ base }) => base >= fromOffset)
        .slice(0, maxBatches),
    readBatchAt: async (_queueId, offset) => log.list().findLast(({ base }) => base <= offset),
    readHeaders: async query => log.headers(query),
  }
}

/** Where the batches leave a hole or overlap; undefined: they are one chain from offset 1 on. */
export function findBreak(log: ModelLog): string | undefined {
  let next = 1
  for (const batch of log.list()) {
    if (batch.base !== next) return `a batch begins at ${batch.base} where ${next} was next`
    next = endOf(batch)
  }
  return undefined
}
