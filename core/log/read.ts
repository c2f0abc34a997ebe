import { LRUCache } from 'lru-cache'
import { createLru } from '../lru.ts'
import type { Batch } from '../model.ts'
import type { Clock } from '../protocol/clock.ts'
import type { LogStore } from '../store.ts'
import { endOf } from './boundaries.ts'
import { decodeText } from './encoding.ts'

/**
 * Reads a queue's batches after an offset, so that nothing that is still to appear is ever stepped over (P2): each batch
 * has to begin where the one before it ended. What is found instead is one of three things: a position in the middle of
 * a batch; a hole that a stale replica shows, which a consistent read fills; or batches past retention, which are passed
 * over and counted.
 */
export type TextBatch = {
  base: number
  count: number
  appendedAtMs: number
  expiresAtMs: number
  /** JSON text of the batch's messages. */
  text: string
}

export type ReadRequest = {
  queueId: number
  /** The last offset that the reader has. */
  afterOffset: number
  /** Stops before the batch that would pass it, but not before the first. Characters of text. */
  maxTextLength: number
  /** Stops when this many messages are read. */
  maxMessages: number
}

/** `skipped`: how many offsets lie between the reader's and the first batch here, past retention. */
export type ReadResult = { batches: TextBatch[]; skipped: number }

export type LogReader = {
  read(request: ReadRequest): Promise<ReadResult>
  /** The batch that holds an offset; undefined if it is past retention, or not there. Consistent. */
  batchAt(queueId: number, offset: number): Promise<TextBatch | undefined>
  /** Lets readers have a batch that was just stored without a read from the store. */
  remember(queueId: number, batch: TextBatch): void
  /** Whether this reader has come across a batch that holds the offset, or a later one. */
  hasMet(queueId: number, offset: number): boolean
}

export type ReaderDeps = {
  store: LogStore
  clock: Clock
  /** Bound of the batch cache, in characters of text. */
  cacheTextLength: number
}

/** Batches are immutable, so caching them is safe; what one pull has read too much of serves the next. */
const batchesPerRead = 64
const minBytesPerRead = 64 * 1024
/** Characters that an entry costs beside its text. */
const entryOverhead = 200
const maxKnownEnds = 10_000
const headersPerRead = 100

export function createLogReader({ store, clock, cacheTextLength }: ReaderDeps): LogReader {
  const cache = new LRUCache<string, TextBatch>({
    maxSize: cacheTextLength,
    sizeCalculation: batch => batch.text.length + entryOverhead,
  })
  /** Positions known to be the end of a batch: an empty read behind one of them needs no look at what lies before. */
  const knownEnds = createLru<string, true>(maxKnownEnds)
  /** For a position, up to where everything behind it is past retention: a reader that waits there need not look again. */
  const deadUntil = createLru<string, number>(maxKnownEnds)
  /** Per queue, the end of the farthest batch that was met. */
  const farthest = createLru<number, number>(maxKnownEnds)
  const keyOf = (queueId: number, offset: number) => `${queueId}:${offset}`
  const isLive = (batch: { expiresAtMs: number }) => batch.expiresAtMs > clock.now()

  function remember(queueId: number, batch: TextBatch): void {
    cache.set(keyOf(queueId, batch.base), batch)
    farthest.set(queueId, Math.max(endOf(batch), farthest.get(queueId) ?? 0))
    knownEnds.set(keyOf(queueId, endOf(batch) - 1), true)
  }

  function toText(batch: Batch): TextBatch {
    const cached = cache.get(keyOf(batch.queueId, batch.base))
    if (cached !== undefined) return cached
    const { base, count, appendedAtMs, expiresAtMs } = batch
    const read = { base, count, appendedAtMs, expiresAtMs, text: decodeText(batch) }
    remember(batch.queueId, read)
    return read
  }

  const load = (queueId: number, fromOffset: number, maxBytes: number, consistent: boolean) =>
    store.readBatches({
      queueId,
      fromOffset,
      maxBatches: batchesPerRead,
      maxBytes: Math.max(maxBytes, minBytesPerRead),
      consistent,
    })

  /** The unbroken run of live batches from `from` on, as far as these go. */
  function chainFrom(from: number, loaded: Batch[]): Batch[] {
    let next = from
    const chain: Batch[] = []
    for (const batch of loaded) {
      if (batch.base !== next || !isLive(batch)) break
      chain.push(batch)
      next = endOf(batch)
    }
    return chain
  }

  /** What there is for a reader that needs `next`, when no batch that begins there was found. */
  async function resolve(request: ReadRequest, next: number, loaded: Batch[]): Promise<ReadResult> {
    const { queueId } = request
    const isAtEnd = loaded.length === 0
    if (isAtEnd && (next === 1 || knownEnds.has(keyOf(queueId, next - 1)))) return { batches: [], skipped: 0 }

    const before = await store.readBatchAt(queueId, next, { consistent: !isAtEnd })
    if (before !== undefined && endOf(before) > next && isLive(before)) {
      return take(request, [toText(before)], chainFrom(endOf(before), loaded), 0)
    }
    if (isAtEnd) {
      if (before !== undefined && endOf(before) === next) knownEnds.set(keyOf(queueId, next - 1), true)
      return { batches: [], skipped: 0 }
    }
    // Batches are there, but not the one that is needed. Only a consistent read can tell that it is gone for good.
    const firstLive = await findLive(queueId, next, deadUntil.get(keyOf(queueId, next)) ?? next)
    if (firstLive !== next) deadUntil.set(keyOf(queueId, next), firstLive)
    const certain = await load(queueId, firstLive, request.maxTextLength, true)
    const chain = chainFrom(firstLive, certain)
    return take(request, [], chain, chain.length === 0 ? 0 : firstLive - next)
  }

  /**
   * The base of the first batch from `from` on that is within retention; where the log ends, if there is none. A query is
   * no snapshot: it may pass a place just before a batch is put there, and then find the next one. So a hole has to be
   * seen twice to be one. That there is none at `gone` is certain: batches behind it were seen before it was looked for.
   */
  async function findLive(queueId: number, gone: number, from: number): Promise<number> {
    let next = from
    let holeAt = gone
    for (;;) {
      const page = await store.readHeaders({
        queueId,
        fromOffset: next,
        direction: 'forward',
        limit: headersPerRead,
        consistent: true,
      })
      let isDoubtful = false
      for (const header of page) {
        isDoubtful = header.base !== next && holeAt !== next
        if (isDoubtful) break
        if (isLive(header)) return header.base
        next = endOf(header)
      }
      if (isDoubtful) holeAt = next
      else if (page.length < headersPerRead) return next
    }
  }

  /** Cuts what was found to what was asked for; the rest stays in the cache for the next pull. */
  function take(request: ReadRequest, head: TextBatch[], chain: Batch[], skipped: number): ReadResult {
    const batches: TextBatch[] = []
    let textLength = 0
    let messages = 0
    const add = (batch: TextBatch) => {
      const isFull =
        batches.length > 0 &&
        (textLength + batch.text.length > request.maxTextLength || messages >= request.maxMessages)
      if (isFull) return false
      batches.push(batch)
      textLength += batch.text.length
      messages += batch.count
      return true
    }
    let hasRoom = head.every(add)
    for (const batch of chain) {
      const read = toText(batch)
      if (hasRoom) hasRoom = add(read)
    }
    return { batches, skipped }
  }

  function fromCache(request: ReadRequest, next: number): TextBatch[] {
    const chain: TextBatch[] = []
    for (let at = next; chain.length < batchesPerRead; ) {
      const batch = cache.get(keyOf(request.queueId, at))
      if (batch === undefined || !isLive(batch)) break
      chain.push(batch)
      at = endOf(batch)
    }
    return chain
  }

  return {
    remember,
    hasMet: (queueId, offset) => offset < (farthest.get(queueId) ?? 1),
    async batchAt(queueId, offset) {
      const beginsThere = cache.get(keyOf(queueId, offset))
      if (beginsThere) return isLive(beginsThere) ? beginsThere : undefined
      const batch = await store.readBatchAt(queueId, offset, { consistent: true })
      return batch && endOf(batch) > offset && isLive(batch) ? toText(batch) : undefined
    },
    async read(request) {
      const next = request.afterOffset + 1
      const cached = fromCache(request, next)
      if (cached.length > 0) return take(request, cached, [], 0)
      const loaded = await load(request.queueId, next, request.maxTextLength, false)
      const chain = chainFrom(next, loaded)
      if (chain.length > 0) return take(request, [], chain, 0)
      return resolve(request, next, loaded)
    },
  }
}
