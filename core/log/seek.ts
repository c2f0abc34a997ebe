import type { BatchHeader } from '../model.ts'
import type { LogStore } from '../store.ts'
import { endOf } from './boundaries.ts'

/**
 * The last offset before the first batch that was appended at `timeMs` or later: a group that is set to it is handed
 * what came from then on. Before the first batch it is the offset before that; where nothing came since, it is the end.
 * Appends of a queue are in time order as far as the writers' clocks agree, so it is a binary search.
 *
 * @param end the offset that the queue's next message will get
 */
export async function findOffsetBefore(store: LogStore, queueId: number, timeMs: number, end: number): Promise<number> {
  const [first] = await readHeader(store, queueId, 1, 'forward')
  let low = first?.base ?? end
  let high = end
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [header] = await readHeader(store, queueId, middle, 'backward')
    if (header !== undefined && header.appendedAtMs >= timeMs) high = header.base
    // Where batches are missing in the middle, the one that was found ends before it.
    else low = Math.max(middle + 1, header === undefined ? 0 : endOf(header))
  }
  return low - 1
}

/** A message that is there, by the batch that it is in. */
export type Unread = Pick<BatchHeader, 'appendedAtMs' | 'expiresAtMs'> & { offset: number }

/** So many batches that are past retention and not deleted yet are looked at in one read. */
const headersPerRead = 100

/** The first message from an offset on that is within retention. Undefined: there is none. */
export async function findUnread(
  store: LogStore,
  queueId: number,
  offset: number,
  nowMs: number,
): Promise<Unread | undefined> {
  const isThere = ({ expiresAtMs }: BatchHeader) => expiresAtMs > nowMs
  const [before] = await readHeader(store, queueId, offset, 'backward')
  if (before && endOf(before) > offset && isThere(before)) return { ...before, offset }
  // Mostly it is the very next one.
  for (let fromOffset = offset, limit = 1; ; limit = headersPerRead) {
    const page = await store.readHeaders({ queueId, fromOffset, direction: 'forward', limit, consistent: true })
    const found = page.find(isThere)
    const last = page.at(-1)
    if (found) return { ...found, offset: found.base }
    if (last === undefined || page.length < limit) return undefined
    fromOffset = endOf(last)
  }
}

function readHeader(
  store: LogStore,
  queueId: number,
  fromOffset: number,
  direction: 'forward' | 'backward',
): Promise<BatchHeader[]> {
  return store.readHeaders({ queueId, fromOffset, direction, limit: 1, consistent: true })
}
