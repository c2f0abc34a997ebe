import { encodeText } from '../../core/log/encoding.ts'
import { createLogReader, type LogReader, type ReadRequest, type ReadResult } from '../../core/log/read.ts'
import type { Batch } from '../../core/model.ts'
import type { LogStore } from '../../core/store.ts'
import { createModelLog, type ModelLog } from '../core/model-log.ts'
import { type Operation, type ScriptedStore, scriptStore } from '../core/scripted-store.ts'
import { batchOf } from '../store/contract.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'

/** A reader over a log that a test can look into, write to, and hide batches of from those who read inconsistently. */
export type Reading = ScriptedStore<LogStore> & {
  log: ModelLog
  clock: ManualClock
  reader: LogReader
  /** Bases that the replica does not show yet. */
  hidden: Set<number>
  /** Appends batches of so many messages each; they live for `livesMs`. */
  append(counts: readonly number[], livesMs?: number): Batch[]
  readAfter(afterOffset: number, limits?: Partial<ReadRequest>): Promise<ReadResult>
  count(operation: Operation): number
}

export const hourMs = 3_600_000

export function createReading(options: { cacheTextLength?: number } = {}): Reading {
  const log = createModelLog()
  const clock = createManualClock()
  const hidden = new Set<number>()
  const visible = (isConsistent: boolean) => log.list().filter(({ base }) => isConsistent || !hidden.has(base))
  const store: LogStore = {
    appendsInOrder: false,
    appendBatch: async batch => log.put(batch),
    readBatches: async ({ fromOffset, maxBatches, consistent }) =>
      visible(consistent)
        .filter(({ base }) => base >= fromOffset)
        .slice(0, maxBatches),
    readBatchAt: async (_queueId, offset, { consistent }) => visible(consistent).findLast(({ base }) => base <= offset),
    readHeaders: async query => log.headers(query),
  }
  const scripted = scriptStore(store)
  const reader = createLogReader({ store: scripted.store, clock, cacheTextLength: 1e6, ...options })
  let end = 1
  return {
    ...scripted,
    log,
    clock,
    reader,
    hidden,
    append: (counts, livesMs = hourMs) =>
      counts.map(count => {
        const text = JSON.stringify(Array.from({ length: count }, (_, i) => ({ body: String(end + i) })))
        const times = { appendedAtMs: clock.now(), expiresAtMs: clock.now() + livesMs }
        const batch = batchOf(1, end, { count, ...encodeText(text, 'fast'), ...times })
        log.batches.set(end, batch)
        end += count
        return batch
      }),
    readAfter: (afterOffset, limits = {}) =>
      reader.read({ queueId: 1, afterOffset, maxTextLength: 1e6, maxMessages: 1e6, ...limits }),
    count: operation => scripted.calls.filter(call => call.operation === operation).length,
  }
}

/** The bases of what was read, and how many offsets were skipped before. */
export const basesOf = ({ batches, skipped }: ReadResult) => ({ bases: batches.map(({ base }) => base), skipped })
