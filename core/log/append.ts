import type { LRUCache } from 'lru-cache'
import { createLru } from '../lru.ts'
import type { Batch, BatchHeader } from '../model.ts'
import { fullJitterMs } from '../protocol/backoff.ts'
import { type Boundaries, createBoundaries, endOf } from './boundaries.ts'
import type { EncodedText } from './encoding.ts'
import { createLanes, type InTurn } from './lanes.ts'
import { type EndDeps, findPublish, readEnd, type Start, walkToTail } from './log-end.ts'

/**
 * Appends batches to queues so that offsets are dense (P2) and a publish is stored once (P8).
 *
 * A put is only ever tried at a true boundary: 1, or where an existing batch ends. So the batches of a queue form one
 * chain, and put-if-absent lets each boundary be taken once. A refusal names the winner, whose end is the next boundary;
 * whoever walks on from winner to winner sees every batch in between, and thereby also an earlier attempt of its own.
 *
 * | answer to the put | what follows |
 * |---|---|
 * | stored | done |
 * | taken, by our own publishId | done: an attempt of ours whose answer was lost |
 * | taken, first time | at once at the winner's end |
 * | taken again | unpinned: `contended`, the caller goes to another queue; pinned: walk to the tail, wait, retry |
 * | throttled | known not to be applied: wait, retry |
 * | unknown | retry at the same base with the same publishId until it is known |
 */
export type AppendRequest = EncodedText & {
  topicName: string
  queueId: number
  count: number
  publishId: string
  retentionMs: number
  /** Stays in its queue however contended it is: it has a key, or was sent to this very queue. */
  pinned: boolean
  /** A retried publish: look for an earlier attempt among the batches of this age or less. */
  lookBackMs?: number
}

export type AppendResult =
  | { outcome: 'stored'; base: number; appendedAtMs: number }
  /** An earlier attempt had been stored; it is now found. */
  | { outcome: 'found'; base: number }
  /** Its publishId is that of a batch of so many other messages. */
  | { outcome: 'others' }
  | { outcome: 'contended' }
  | { outcome: 'throttled' }
  | { outcome: 'unknown'; cause: unknown }

export type AppendDeps = EndDeps & { random: () => number }

export type Appender = (request: AppendRequest) => Promise<AppendResult>

/** Seconds, since a boundary must not be used long after it was learned; and below every client's time-out. */
export const appendDeadlineMs = 8_000
const contention = { baseMs: 10, maxMs: 500 }

export function createAppender(deps: AppendDeps): Appender {
  const boundaries = createBoundaries(deps.clock.now)
  const passes = createLru<number, number>(maxPasses)
  // Where a later put could take effect without the earlier one, it would leave a hole: one at a time for each queue.
  const inTurn: InTurn = deps.store.appendsInOrder ? (_queueId, append) => append(false) : createLanes()
  return request => {
    // From the call on: a caller who has waited too long for its turn may be gone, and its next attempt stored already.
    const deadlineMs = deps.clock.now() + appendDeadlineMs
    const calledAtMs = deps.clock.monotonic()
    const { queueId } = request
    const passesBefore = passes.get(queueId)
    return inTurn(queueId, hasWaited => {
      const hasPassed = boundaries.get(queueId) === undefined || passes.get(queueId) !== passesBefore
      const mayBeStored = hasWaited && hasPassed
      const waitedMs = deps.clock.monotonic() - calledAtMs
      // Its next attempt may be among what went by meanwhile: to look for it is as if it were the retry.
      const asked = mayBeStored ? { ...request, lookBackMs: Math.max(waitedMs, request.lookBackMs ?? 0) } : request
      return appendOnce({ ...deps, boundaries, passes }, asked, deadlineMs)
    })
  }
}

/**
 * `passes`: per queue, how often this container went past batches of others. Whoever waited for its turn meanwhile begins
 * behind batches that it has not seen.
 */
type Appending = AppendDeps & { boundaries: Boundaries; passes: LRUCache<number, number> }
const maxPasses = 10_000
const countPass = (passes: Appending['passes'], queueId: number) => passes.set(queueId, (passes.get(queueId) ?? 0) + 1)

async function appendOnce(deps: Appending, request: AppendRequest, deadlineMs: number): Promise<AppendResult> {
  const { store, clock, random, boundaries, passes } = deps
  const { queueId, count, publishId } = request
  const start = await findStart(deps, request)
  if (start.own !== undefined) return foundAs(start.own, count)

  // Read now: since the end was learned, other appends of this container may have gone on from there.
  let base = (request.lookBackMs === undefined ? boundaries.get(queueId) : undefined) ?? start.end
  let retry = 0
  let isFirstRefusal = true
  let doubt: { cause: unknown } | undefined
  const pause = () => clock.sleep(fullJitterMs(contention, retry++, random))

  for (;;) {
    const nowMs = clock.now()
    if (nowMs >= deadlineMs) return doubt ? { outcome: 'unknown', cause: doubt.cause } : { outcome: 'throttled' }
    // Other appends of this container may be under way further on already: what this one learns is old then.
    const isFarthest = (boundaries.get(queueId) ?? base) <= base
    const answer = store.appendBatch(toBatch(request, base, nowMs))
    if (store.appendsInOrder && isFarthest) boundaries.set(queueId, base + count, nowMs)
    const result = await answer
    switch (result.outcome) {
      case 'stored':
        if (!store.appendsInOrder) boundaries.set(queueId, base + count, nowMs)
        return { outcome: 'stored', base, appendedAtMs: nowMs }
      case 'taken': {
        doubt = undefined
        base = endOf(result.winner)
        if (isFarthest) boundaries.set(queueId, base, nowMs)
        if (result.winner.publishId === publishId) return foundAs(result.winner, count)
        countPass(passes, queueId)
        if (isFirstRefusal) {
          isFirstRefusal = false
          break
        }
        if (!request.pinned) return { outcome: 'contended' }
        await pause()
        const walk = await walkToTail(deps, request, base)
        countPass(passes, queueId)
        if (walk.own !== undefined) return foundAs(walk.own, count)
        base = walk.end
        break
      }
      case 'throttled':
        await pause()
        break
      case 'unknown':
        doubt = { cause: result.cause }
        await pause()
        break
    }
  }
}

/** What it means for a publish of so many messages that there is a batch of its name. */
export const foundAs = (own: BatchHeader, count: number): AppendResult =>
  own.count === count ? { outcome: 'found', base: own.base } : { outcome: 'others' }

/** The boundary to begin at: what is appended behind it is seen on the way. Or the batch of an earlier attempt. */
async function findStart(deps: Appending, request: AppendRequest): Promise<Start> {
  const { boundaries, passes } = deps
  const { topicName, queueId, publishId, lookBackMs } = request
  const known = boundaries.get(queueId)
  if (lookBackMs === undefined && known !== undefined) return { end: known }

  const askedAtMs = deps.clock.now()
  const { end, tail } = await readEnd(deps, topicName, queueId)
  if (boundaries.get(queueId) === undefined) {
    boundaries.set(queueId, end, askedAtMs)
    countPass(passes, queueId)
  }
  // An attempt that was slow to come here may find itself overtaken by the next one.
  if (tail?.publishId === publishId) return { end, own: tail }
  if (lookBackMs === undefined) return { end }

  // A retried publish begins at the end that the store shows, and only then looks at what lies before it. The remembered
  // boundary may lie behind batches that are under way and in no look-back yet, an earlier attempt among them.
  const own = await findPublish(deps, queueId, publishId, lookBackMs)
  return own === undefined ? { end } : { end, own }
}

function toBatch(request: AppendRequest, base: number, nowMs: number): Batch {
  const { queueId, count, publishId, codec, bytes, retentionMs } = request
  return { queueId, base, count, publishId, appendedAtMs: nowMs, expiresAtMs: nowMs + retentionMs, codec, bytes }
}
