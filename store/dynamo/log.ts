import type { Batch, BatchHeader } from '../../core/model.ts'
import type { AppendOutcome, BatchQuery, HeaderQuery, LogStore } from '../../core/store.ts'
import { type Item, num } from './attributes.ts'
import { classifyFailure, refusalOf } from './errors.ts'
import { allOf, expressions } from './expressions.ts'
import { batchOf, headerOf, itemOfBatch } from './items.ts'
import { createPageSizes } from './page-size.ts'
import type { Requests } from './requests.ts'

export type LogContext = { requests: Requests; logTable: string }

/**
 * The log on table `log`: one item for each batch, under the queue's id and the batch's base offset.
 *
 * Read units: 0.5 for each 4 KB that a request reads in all (1 if consistent), at least one 4 KB. Write units: 1 for each
 * KB of an item. A projection saves transfer, not units.
 */
export function createLog({ requests, logTable }: LogContext): LogStore {
  const pageSizes = createPageSizes()

  return {
    appendsInOrder: false,

    /** 1 request; 1 write unit for each KB, also if refused (the refusal carries the winner: no read follows). */
    async appendBatch(batch: Batch): Promise<AppendOutcome> {
      const clauses = { boundaryIsFree: 'attribute_not_exists(#q)' }
      try {
        await requests.putOnce('appendBatch', {
          TableName: logTable,
          Item: itemOfBatch(batch),
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          ...expressions({ ConditionExpression: allOf(clauses) }),
        })
        return { outcome: 'stored' }
      } catch (error) {
        const winner = refusalOf(error)?.old
        if (winner !== undefined) return { outcome: 'taken', winner: headerOf(winner) }
        return failedAppend(error)
      }
    },

    /** 1 request for each page of as many batches as should fit; 0.5 read units for each 4 KB (1 if consistent). */
    async readBatches({ queueId, fromOffset, maxBatches, maxBytes, consistent }: BatchQuery): Promise<Batch[]> {
      const batches: Batch[] = []
      let bytes = 0
      let from: Item | undefined
      while (batches.length < maxBatches && (batches.length === 0 || bytes < maxBytes)) {
        const wanted = pageSizes.batchesIn(queueId, maxBytes - bytes)
        const page = await requests.queryPage('readBatches', {
          TableName: logTable,
          ConsistentRead: consistent,
          Limit: Math.min(maxBatches - batches.length, wanted),
          ...(from !== undefined && { ExclusiveStartKey: from }),
          ...forwardFrom(queueId, fromOffset),
        })
        const before = { batches: batches.length, bytes }
        for (const item of page.items) {
          if (batches.length > 0 && bytes >= maxBytes) break
          const batch = batchOf(item)
          batches.push(batch)
          bytes += batch.bytes.byteLength
        }
        pageSizes.observe(queueId, batches.length - before.batches, bytes - before.bytes)
        from = page.next
        if (from === undefined) break
      }
      return batches
    },

    /** 1 request; 0.5 read units for each 4 KB of the batch (1 if consistent). */
    async readBatchAt(queueId, offset, { consistent }): Promise<Batch | undefined> {
      const [item] = await requests.query(
        'readBatchAt',
        { TableName: logTable, ConsistentRead: consistent, ScanIndexForward: false, ...backwardFrom(queueId, offset) },
        1,
      )
      return item && batchOf(item)
    },

    /** 1 request for each 1 MB of batches; the read units of the whole batches, though only headers travel. */
    async readHeaders({ queueId, fromOffset, direction, limit, consistent }: HeaderQuery): Promise<BatchHeader[]> {
      const range = direction === 'forward' ? forwardFrom : backwardFrom
      const items = await requests.query(
        'readHeaders',
        {
          TableName: logTable,
          ConsistentRead: consistent,
          ScanIndexForward: direction === 'forward',
          ...range(queueId, fromOffset, '#q, #o, #n, #t, #p, #e'),
        },
        limit,
      )
      return items.map(headerOf)
    },
  }
}

/**
 * An append is never repeated here: whether and where to try again is the publish algorithm's to decide, which knows its
 * own batches by their `publishId`.
 */
function failedAppend(error: unknown): AppendOutcome {
  switch (classifyFailure(error)) {
    case 'throttled':
    case 'conflict':
      return { outcome: 'throttled' }
    case 'unknown':
      return { outcome: 'unknown', cause: error }
    case 'defect':
      throw error
  }
}

const forwardFrom = (queueId: number, offset: number, projection?: string) =>
  range('#q = :q AND #o >= :o', queueId, offset, projection)

const backwardFrom = (queueId: number, offset: number, projection?: string) =>
  range('#q = :q AND #o <= :o', queueId, offset, projection)

const range = (KeyConditionExpression: string, queueId: number, offset: number, projection?: string) =>
  expressions(
    { KeyConditionExpression, ...(projection !== undefined && { ProjectionExpression: projection }) },
    { q: num(queueId), o: num(offset) },
  )
