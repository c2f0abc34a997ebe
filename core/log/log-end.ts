import type { BatchHeader } from '../model.ts'
import type { Clock } from '../protocol/clock.ts'
import type { LogStore } from '../store.ts'
import { endOf, isDueForDeletion } from './boundaries.ts'

/** Finding things near the end of a log: where it ends, and whether a publish is in it. All reads here are consistent. */
export type EndDeps = {
  store: LogStore
  clock: Clock
  /** Where a queue's log ends, by what the registry knows: its checkpoint; with `deep`, the commits of its groups too. */
  resumeAt: (topicName: string, queueId: number, deep: boolean) => Promise<number>
}

/** By how much the clocks of two writers may differ when a retried publish looks back. */
const clockToleranceMs = 60_000
const headersPerRead = 100
const endOfLog = Number.MAX_SAFE_INTEGER

/** A boundary; or the batch of the publish that was looked for on the way there. */
export type Start = { end: number; own?: BatchHeader }

/**
 * Where the log ends. The tail says it, unless it was trimmed: TTL deletes in no order, so behind a tail that is due
 * for deletion newer batches may be gone already. Then the registry remembers: see "Never forget the head".
 */
export async function findEnd(deps: EndDeps, topicName: string, queueId: number): Promise<number> {
  return (await readEnd(deps, topicName, queueId)).end
}

export async function readEnd(
  deps: EndDeps,
  topicName: string,
  queueId: number,
): Promise<{ end: number; tail: BatchHeader | undefined }> {
  const tail = await findTail(deps.store, queueId)
  const isTrusted = tail !== undefined && !isDueForDeletion(tail, deps.clock.now())
  const end = tail === undefined ? 1 : endOf(tail)
  const resumesAt = await deps.resumeAt(topicName, queueId, !isTrusted)
  if (isTrusted || resumesAt <= end) return { end: Math.max(end, resumesAt), tail }
  // Either the log was trimmed up to there; or others have gone on with it meanwhile, and what is committed by now ends in
  // the middle of their batch: then the boundary is where the first of them begins.
  const query = { queueId, fromOffset: end, limit: 1, consistent: true }
  const [first] = await deps.store.readHeaders({ ...query, direction: 'forward' })
  return { end: first?.base ?? resumesAt, tail }
}

/** The last batch that a queue has now; not `consistent`, one that it had a moment ago, for half the price. */
export async function findTail(
  store: LogStore,
  queueId: number,
  { consistent = true } = {},
): Promise<BatchHeader | undefined> {
  const query = { queueId, fromOffset: endOfLog, limit: 1, consistent }
  const [tail] = await store.readHeaders({ ...query, direction: 'backward' })
  return tail
}

/** Goes from boundary to boundary up to the end of the log, past every batch, looking for our own. */
export async function walkToTail(
  deps: EndDeps,
  { topicName, queueId, publishId }: { topicName: string; queueId: number; publishId: string },
  from: number,
): Promise<Start> {
  let end = from
  let holeAt: number | undefined
  for (;;) {
    const page = await deps.store.readHeaders({
      queueId,
      fromOffset: end,
      direction: 'forward',
      limit: headersPerRead,
      consistent: true,
    })
    let hasHole = false
    for (const header of page) {
      hasHole = header.base !== end
      if (hasHole) break
      if (header.publishId === publishId) return { end, own: header }
      end = endOf(header)
    }
    // A query is no snapshot: it may pass a place just before a batch is put there, and then find the next one. Only a
    // hole that is still there at the next look was trimmed, and a boundary before it must not be used again.
    if (hasHole && holeAt === end) return { end: await findEnd(deps, topicName, queueId) }
    if (hasHole) holeAt = end
    else if (page.length < headersPerRead) return { end }
  }
}

/** Looks for an earlier attempt of a publish, from the end of the log back to when that attempt can have been sent. */
export async function findPublish(
  deps: Pick<EndDeps, 'store' | 'clock'>,
  queueId: number,
  publishId: string,
  lookBackMs: number,
): Promise<BatchHeader | undefined> {
  for await (const page of lookBack(deps, queueId, lookBackMs)) {
    const own = page.find(header => header.publishId === publishId)
    if (own) return own
  }
  return undefined
}

/** The headers from the end of a log back to those of an age: page by page, the latest first. */
export async function* lookBack(
  deps: Pick<EndDeps, 'store' | 'clock'>,
  queueId: number,
  lookBackMs: number,
): AsyncGenerator<BatchHeader[], void> {
  const oldestMs = deps.clock.now() - lookBackMs - clockToleranceMs
  let fromOffset = endOfLog
  for (;;) {
    const page = await deps.store.readHeaders({
      queueId,
      fromOffset,
      direction: 'backward',
      limit: headersPerRead,
      consistent: true,
    })
    yield page
    const oldest = page.at(-1)
    if (oldest === undefined || page.length < headersPerRead) return
    // By whole pages, which are paid for: a few batches may carry the times of a clock that was set since.
    if (oldest.appendedAtMs < oldestMs || oldest.base === 1) return
    fromOffset = oldest.base - 1
  }
}
