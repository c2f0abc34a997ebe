import {
  BatchGetItemCommand,
  DeleteItemCommand,
  type DeleteItemCommandInput,
  type DynamoDBClient,
  GetItemCommand,
  type GetItemCommandInput,
  PutItemCommand,
  type PutItemCommandInput,
  QueryCommand,
  type QueryCommandInput,
  type TransactWriteItem,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb'
import { fullJitterMs } from '../../core/protocol/backoff.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import { StoreError } from '../../core/store.ts'
import type { Item } from './attributes.ts'
import { consumedBy, consumedByFailure, type Metered } from './capacity.ts'
import { classifyFailure, type Refusal, refusalOf, refusalsOf } from './errors.ts'
import type { OnCapacity, Operation } from './meter.ts'

/**
 * Requests as the operations make them: refused conditions come back as values, what is safe to repeat is repeated, and
 * what remains is a `StoreError` or a defect.
 *
 * A throttled or conflicting request was not applied, so it is repeated whatever it does. One whose answer was lost may
 * have been applied. It is repeated only if applying it twice does no harm and its answer stays true (`repeatable`: every
 * read, a blind put, a counter that may skip); a write whose answer names who did it (`created`, `claimed`, `left`) would
 * take its own first attempt for somebody else's, so there (`once`) the caller hears `unavailable`.
 */
export type Effect = 'repeatable' | 'once'

export type WriteAnswer = { refused: false; item: Item | undefined } | ({ refused: true } & Refusal)
export type TransactionAnswer = { refused: false } | { refused: true; refusals: (Refusal | undefined)[] }

/** Three repeats within about a third of a second: a conflict lasts milliseconds, and a Lambda's caller waits. */
const repeats = 3
const backoff = { baseMs: 20, maxMs: 200 }

export type RequestOptions = {
  client: DynamoDBClient
  clock: Clock
  random: () => number
  onCapacity: OnCapacity | undefined
}

export type Requests = ReturnType<typeof createRequests>

export function createRequests({ client, clock, random, onCapacity }: RequestOptions) {
  const metering = onCapacity === undefined ? {} : { ReturnConsumedCapacity: 'TOTAL' as const }

  async function count<T extends Metered>(operation: Operation, kind: 'read' | 'write', sent: Promise<T>, item?: Item) {
    try {
      const answer = await sent
      onCapacity?.(operation, consumedBy(kind, answer))
      return answer
    } catch (error) {
      onCapacity?.(operation, consumedByFailure(error, item))
      throw error
    }
  }

  async function repeated<T>(operation: Operation, effect: Effect, attempt: () => Promise<T>): Promise<T> {
    let inDoubt = false
    for (let retry = 0; ; retry++) {
      try {
        return await attempt()
      } catch (cause) {
        const failure = classifyFailure(cause)
        if (failure === 'defect') throw cause
        inDoubt ||= failure === 'unknown'
        const mayRepeat = failure !== 'unknown' || effect === 'repeatable'
        if (!mayRepeat || retry === repeats) throw storeError(operation, inDoubt, cause)
        await clock.sleep(fullJitterMs(backoff, retry, random))
      }
    }
  }

  /** One conditional write; a refused condition is an answer. */
  const write = (
    operation: Operation,
    effect: Effect,
    send: () => Promise<Metered & { Attributes?: Item | undefined }>,
  ) =>
    repeated(operation, effect, async (): Promise<WriteAnswer> => {
      try {
        const answer = await count(operation, 'write', send())
        return { refused: false, item: answer.Attributes }
      } catch (error) {
        const refusal = refusalOf(error)
        if (refusal === undefined) throw error
        return { refused: true, ...refusal }
      }
    })

  async function queryPage(operation: Operation, input: QueryCommandInput): Promise<{ items: Item[]; next?: Item }> {
    const page = await repeated(operation, 'repeatable', () =>
      count(operation, 'read', client.send(new QueryCommand({ ...input, ...metering }))),
    )
    const { Items: items = [], LastEvaluatedKey: next } = page
    return next === undefined || Object.keys(next).length === 0 ? { items } : { items, next }
  }

  return {
    /** One attempt and no repeat; its failures as they are. */
    putOnce: (operation: Operation, input: PutItemCommandInput) =>
      count(operation, 'write', client.send(new PutItemCommand({ ...input, ...metering })), input.Item),

    put: (operation: Operation, effect: Effect, input: PutItemCommandInput) =>
      write(operation, effect, () => client.send(new PutItemCommand({ ...input, ...metering }))),

    update: (operation: Operation, effect: Effect, input: UpdateItemCommandInput) =>
      write(operation, effect, () => client.send(new UpdateItemCommand({ ...input, ...metering }))),

    delete: (operation: Operation, effect: Effect, input: DeleteItemCommandInput) =>
      write(operation, effect, () => client.send(new DeleteItemCommand({ ...input, ...metering }))),

    /** All or nothing; each item costs twice the write units of a single write. */
    transact: (operation: Operation, effect: Effect, items: TransactWriteItem[]) =>
      repeated(operation, effect, async (): Promise<TransactionAnswer> => {
        try {
          await count(
            operation,
            'write',
            client.send(new TransactWriteItemsCommand({ TransactItems: items, ...metering })),
          )
          return { refused: false }
        } catch (error) {
          const refusals = refusalsOf(error)
          if (refusals === undefined) throw error
          return { refused: true, refusals }
        }
      }),

    async get(operation: Operation, input: GetItemCommandInput): Promise<Item | undefined> {
      const answer = await repeated(operation, 'repeatable', () =>
        count(operation, 'read', client.send(new GetItemCommand({ ...input, ...metering }))),
      )
      return answer.Item
    },

    /** Items of many keys, in no order. The keys must differ. */
    async getMany(operation: Operation, table: string, keys: Item[]): Promise<Item[]> {
      const items: Item[] = []
      let waiting = keys
      for (let emptyHanded = 0; waiting.length > 0; ) {
        const asked = waiting.slice(0, 100)
        const answer = await repeated(operation, 'repeatable', () => {
          const RequestItems = { [table]: { Keys: asked, ConsistentRead: true } }
          return count(operation, 'read', client.send(new BatchGetItemCommand({ RequestItems, ...metering })))
        })
        const found = answer.Responses?.[table] ?? []
        const unprocessed = answer.UnprocessedKeys?.[table]?.Keys ?? []
        items.push(...found)
        waiting = [...unprocessed, ...waiting.slice(100)]
        if (unprocessed.length < asked.length) emptyHanded = 0
        else if (emptyHanded++ === repeats) throw storeError(operation, false, undefined)
        if (unprocessed.length > 0) await clock.sleep(fullJitterMs(backoff, emptyHanded, random))
      }
      return items
    },

    queryPage,

    /** All items that a query finds, or the first `limit` of them. */
    async query(operation: Operation, input: QueryCommandInput, limit = Number.POSITIVE_INFINITY): Promise<Item[]> {
      const items: Item[] = []
      for (let from: Item | undefined; items.length < limit; ) {
        const remaining = limit - items.length
        const page = await queryPage(operation, {
          ...input,
          ...(Number.isFinite(remaining) && { Limit: remaining }),
          ...(from !== undefined && { ExclusiveStartKey: from }),
        })
        items.push(...page.items)
        from = page.next
        if (from === undefined) break
      }
      return items
    },
  }
}

function storeError(operation: Operation, inDoubt: boolean, cause: unknown): StoreError {
  return inDoubt
    ? new StoreError('unavailable', `${operation}: DynamoDB did not answer or failed; the outcome is unknown`, {
        cause,
      })
    : new StoreError('throttled', `${operation}: DynamoDB asks for a slower pace; nothing was written`, { cause })
}
