import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { type Clock, systemClock } from '../../core/protocol/clock.ts'
import { createStaleReplica } from './dynamo-stale.ts'
import {
  bodyOf,
  type Handler,
  type Json,
  makeAnswer,
  makeError,
  readAnswer,
  targetOf,
  type WireAnswer,
  type WireOptions,
  type WireRequest,
  withBody,
} from './dynamo-wire.ts'
import { seededRandom } from './random.ts'

/**
 * What DynamoDB does to a client at times, and no engine on one machine:
 * - `throttle`: refused for its pace, not applied;
 * - `conflict`: a write met another transaction, not applied;
 * - `loseRequest`: never arrived, time-out; `loseAnswer`: applied, time-out;
 * - `serverError`: status 500, applied or not;
 * - `late`: applied at once, answered some milliseconds later, so that answers overtake each other;
 * - `stale`: an inconsistent read is answered by a replica that is behind;
 * - `unprocessed`: a batch read is answered in part.
 */
export const faultKinds = [
  'throttle',
  'conflict',
  'loseRequest',
  'loseAnswer',
  'serverError',
  'late',
  'stale',
  'unprocessed',
] as const
export type FaultKind = (typeof faultKinds)[number]
/** Share of the requests that meet each fault, from 0 to 1; together at most 1. */
export type FaultRates = Partial<Record<FaultKind, number>>

export type FaultOptions = {
  seed: number
  rates?: FaultRates
  /** Longest delay of a late answer. @default 3 */
  maxLateMs?: number
  /** How many writes a stale replica may be behind. @default 8 */
  staleWrites?: number
  /** Whether a write that comes to an item that a transaction is at is refused, as in DynamoDB. @default false */
  meetAtItems?: boolean
  clock?: Clock
}

export type Faults = {
  /** May be changed at any time. */
  rates: FaultRates
  /** What the next requests meet, one each, whatever the rates. */
  next: (FaultKind | 'none')[]
  /** How many faults of each kind have happened. */
  counts: Record<FaultKind, number>
  /** Requests that the client has made. */
  requests: number
}

const writes = new Set(['PutItem', 'UpdateItem', 'DeleteItem', 'TransactWriteItems'])
const reads = new Set(['GetItem', 'Query', 'BatchGetItem'])

/** Puts faults between a client that has not been used yet and its endpoint. Only reads and writes of items meet them. */
export function injectFaults(client: DynamoDBClient, options: FaultOptions): Faults {
  const { seed, rates = {}, maxLateMs = 3, staleWrites = 8, meetAtItems = false, clock = systemClock } = options
  const random = seededRandom(seed)
  const replica = createStaleReplica(random, staleWrites)
  const zero = Object.fromEntries(faultKinds.map(kind => [kind, 0])) as Record<FaultKind, number>
  const faults: Faults = { rates, next: [], counts: zero, requests: 0 }
  const inner = client.config.requestHandler

  /** Items that a transaction is at. */
  const busy = new Set<string>()

  async function handle(request: WireRequest, wireOptions: WireOptions): Promise<WireAnswer> {
    if (!meetAtItems || !writes.has(targetOf(request))) return inner.handle(request, wireOptions)
    const items = itemsOf(request)
    if (items.some(item => busy.has(item))) {
      faults.counts.conflict++
      return conflicting(request)
    }
    if (targetOf(request) !== 'TransactWriteItems') return inner.handle(request, wireOptions)
    for (const item of items) busy.add(item)
    try {
      return await inner.handle(request, wireOptions)
    } finally {
      for (const item of items) busy.delete(item)
    }
  }

  async function send(request: WireRequest, wireOptions: WireOptions): Promise<WireAnswer> {
    const answer = await handle(request, wireOptions)
    if (writes.has(targetOf(request)) && answer.response.statusCode === 200) replica.wrote(request)
    return replica.remember(request, answer)
  }

  async function meet(
    kind: FaultKind,
    request: WireRequest,
    wireOptions: WireOptions,
  ): Promise<WireAnswer | undefined> {
    switch (kind) {
      case 'throttle':
        return throttled(request)
      case 'conflict':
        return writes.has(targetOf(request)) ? conflicting(request) : undefined
      case 'loseRequest':
        throw timeout()
      case 'loseAnswer':
        await readAnswer(await send(request, wireOptions))
        throw timeout()
      case 'serverError':
        if (random() < 0.5) await readAnswer(await send(request, wireOptions))
        return makeError(500, 'InternalServerError')
      case 'late': {
        const answer = await send(request, wireOptions)
        await clock.sleep(random() * maxLateMs)
        return answer
      }
      case 'stale':
        return replica.answer(inner, request, wireOptions)
      case 'unprocessed':
        return targetOf(request) === 'BatchGetItem' ? answeredInPart(inner, request, wireOptions) : undefined
    }
  }

  const faulty: Handler = Object.create(inner)
  client.config.requestHandler = Object.assign(faulty, {
    async handle(request: WireRequest, wireOptions: WireOptions) {
      const target = targetOf(request)
      if (!writes.has(target) && !reads.has(target)) return inner.handle(request, wireOptions)
      faults.requests++
      const kind = faults.next.shift() ?? pick(faults.rates, random())
      if (kind === undefined || kind === 'none') return send(request, wireOptions)
      let happened = true
      try {
        const answer = await meet(kind, request, wireOptions)
        happened = answer !== undefined
        return answer ?? (await send(request, wireOptions))
      } finally {
        if (happened) faults.counts[kind]++
      }
    },
  })
  return faults
}

function pick(rates: FaultRates, at: number): FaultKind | undefined {
  let upTo = 0
  return faultKinds.find(kind => {
    upTo += rates[kind] ?? 0
    return at < upTo
  })
}

const timeout = () => Object.assign(new Error('the request timed out'), { name: 'TimeoutError', code: 'ETIMEDOUT' })

function throttled(request: WireRequest): WireAnswer {
  return targetOf(request) === 'TransactWriteItems'
    ? cancelled(request, 'ThrottlingError')
    : makeError(400, 'ProvisionedThroughputExceededException')
}

function conflicting(request: WireRequest): WireAnswer {
  return targetOf(request) === 'TransactWriteItems'
    ? cancelled(request, 'TransactionConflict')
    : makeError(400, 'TransactionConflictException')
}

/** What a write is at, also what it only looks at. The registry's items: those of the log are in no transaction. */
function itemsOf(request: WireRequest): string[] {
  type Write = { TableName: string; Key?: Json; Item?: Json }
  const { TransactItems, ...single } = bodyOf(request) as Json & { TransactItems?: Record<string, Write>[] }
  const written = TransactItems?.flatMap(item => Object.values(item)) ?? [single as Write]
  return written.map(({ TableName, Key, Item }) => {
    const { pk, sk } = (Key ?? Item ?? {}) as { pk?: Json; sk?: Json }
    return JSON.stringify([TableName, pk, sk])
  })
}

function cancelled(request: WireRequest, code: string): WireAnswer {
  const { TransactItems } = bodyOf(request) as { TransactItems: Json[] }
  const reasons = TransactItems.map((_, i): Json => (i === 0 ? { Code: code, Message: code } : { Code: 'None' }))
  return makeError(400, 'TransactionCanceledException', { CancellationReasons: reasons })
}

async function answeredInPart(inner: Handler, request: WireRequest, options: WireOptions) {
  type Keys = { [table: string]: { Keys: Json[] } & Json }
  const { RequestItems, ...rest } = bodyOf(request) as Json & { RequestItems: Keys }
  const [table, wanted] = Object.entries(RequestItems)[0] ?? []
  if (table === undefined || wanted === undefined || wanted.Keys.length < 2) return undefined
  const half = Math.floor(wanted.Keys.length / 2)
  const part = { ...rest, RequestItems: { [table]: { ...wanted, Keys: wanted.Keys.slice(0, half) } } }
  const { status, text } = await readAnswer(await inner.handle(withBody(request, part), options))
  const unprocessed = { [table]: { ...wanted, Keys: wanted.Keys.slice(half) } }
  return makeAnswer(status, JSON.stringify({ ...JSON.parse(text), UnprocessedKeys: unprocessed }))
}
