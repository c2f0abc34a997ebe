import type { SQLOutputValue } from 'node:sqlite'
import { isBoundary } from '../../core/log/boundaries.ts'
import type { Batch, BatchHeader, Codec } from '../../core/model.ts'
import type { LogStore } from '../../core/store.ts'
import { keys } from '../keys.ts'
import type { Database } from './database.ts'
import type { Records } from './records.ts'

const header = 'q, o, n, p, t, e'

/** The log in SQLite: one row for each batch, in order of queue and offset. */
export function createLog(database: Database, written: Records): LogStore & Trimming {
  const { reader, writer } = database
  const insert = writer.prepare(`INSERT INTO log (${header}, c, b) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
  const lastWritten = writer.prepare(`SELECT ${header} FROM log WHERE q = ? ORDER BY o DESC LIMIT 1`)
  const atBase = writer.prepare(`SELECT ${header} FROM log WHERE q = ? AND o = ?`)
  const forward = reader.prepare(`SELECT ${header}, c, b FROM log WHERE q = ? AND o >= ? ORDER BY o LIMIT ?`)
  const at = reader.prepare(`SELECT ${header}, c, b FROM log WHERE q = ? AND o <= ? ORDER BY o DESC LIMIT 1`)
  const headersUp = reader.prepare(`SELECT ${header} FROM log WHERE q = ? AND o >= ? ORDER BY o LIMIT ?`)
  const headersDown = reader.prepare(`SELECT ${header} FROM log WHERE q = ? AND o <= ? ORDER BY o DESC LIMIT ?`)
  const nextQueue = writer.prepare('SELECT MIN(q) AS q FROM log WHERE q > ?')
  const firstKept = writer.prepare('SELECT o FROM log WHERE q = ? AND e > ? ORDER BY o LIMIT 1')
  const deleteBelow = writer.prepare(
    'DELETE FROM log WHERE q = ? AND o IN (SELECT o FROM log WHERE q = ? AND o < ? ORDER BY o LIMIT ?)',
  )

  return {
    appendsInOrder: true,

    appendBatch: batch =>
      database.write(() => {
        const { queueId, base, appendedAtMs } = batch
        // Nobody else writes meanwhile, so this store can tell more than whether the base is free: whether it is a boundary.
        const last = lastWritten.get(queueId)
        const tail = last && toHeader(last)
        if (tail && !isBoundary(tail, base, appendedAtMs)) {
          const there = atBase.get(queueId, base)
          return { outcome: 'taken', winner: there ? toHeader(there) : tail }
        }
        const { count, publishId, expiresAtMs, codec, bytes } = batch
        insert.run(queueId, base, count, publishId, appendedAtMs, expiresAtMs, codec, bytes)
        return { outcome: 'stored' }
      }),

    readBatches: ({ queueId, fromOffset, maxBatches, maxBytes }) =>
      database.read(() => {
        const batches: Batch[] = []
        let bytes = 0
        for (const row of forward.iterate(queueId, fromOffset, maxBatches)) {
          const batch = toBatch(row)
          batches.push(batch)
          bytes += batch.bytes.length
          if (bytes >= maxBytes) break
        }
        return batches
      }),

    readBatchAt: (queueId, offset) =>
      database.read(() => {
        const row = at.get(queueId, offset)
        return row && toBatch(row)
      }),

    readHeaders: ({ queueId, fromOffset, direction, limit }) =>
      database.read(() =>
        (direction === 'forward' ? headersUp : headersDown).all(queueId, fromOffset, limit).map(toHeader),
      ),

    /**
     * Deletes batches at the head of each queue whose retention ended before `beforeMs`, at most `limit` of them; returns
     * how many. The last batch of a queue stays whatever its age: it says where the queue's offsets go on, also when no
     * process ran for as long as a checkpoint may be late. Of a queue that its topic has no more nothing stays.
     */
    trim: (beforeMs, limit) =>
      database.write(() => {
        let deleted = 0
        for (let queueId = next(0); queueId !== undefined && deleted < limit; queueId = next(queueId)) {
          const kept = firstKept.get(queueId, beforeMs) ?? lastWritten.get(queueId)
          if (kept) deleted += trimBelow(queueId, Number(kept.o), limit - deleted)
        }
        for (const { sk } of written.list(keys.removedQueuesPartition)) {
          const queueId = Number(sk)
          const kept = firstKept.get(queueId, beforeMs)
          deleted += trimBelow(queueId, Number(kept?.o ?? Number.MAX_SAFE_INTEGER), limit - deleted)
          if (lastWritten.get(queueId) === undefined) written.delete(keys.removedQueue(queueId))
        }
        return deleted
      }),
  }

  function trimBelow(queueId: number, offset: number, limit: number): number {
    return Number(deleteBelow.run(queueId, queueId, offset, limit).changes)
  }

  function next(queueId: number): number | undefined {
    const found = nextQueue.get(queueId)?.q
    return typeof found === 'number' ? found : undefined
  }
}

type Trimming = { trim(beforeMs: number, limit: number): Promise<number> }

type Row = Record<string, SQLOutputValue>

function toHeader(row: Row): BatchHeader {
  return {
    queueId: Number(row.q),
    base: Number(row.o),
    count: Number(row.n),
    publishId: String(row.p),
    appendedAtMs: Number(row.t),
    expiresAtMs: Number(row.e),
  }
}

function toBatch(row: Row): Batch {
  const bytes = row.b
  if (!(bytes instanceof Uint8Array)) throw new TypeError('a batch without bytes')
  return { ...toHeader(row), codec: Number(row.c) as Codec, bytes }
}
