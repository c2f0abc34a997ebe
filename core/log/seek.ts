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
  const range = { queueId, offset: first?.base ?? end, end }
  return (await findFirst(store, range, ({ appendedAtMs }) => appendedAtMs >= timeMs)) - 1
}

/** The offsets of a queue from `offset` to before `end`. */
type Range = { queueId: number; offset: number; end: number }

/** Where the first batch begins that fulfils what all behind it fulfil too; the end of the range where none does. */
async function findFirst(
  store: LogStore,
  { queueId, offset, end }: Range,
  isLate: (header: BatchHeader) => boolean,
): Promise<number> {
  let low = offset
  let high = end
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [header] = await readHeader(store, queueId, middle, 'backward')
    if (header !== undefined && isLate(header)) high = header.base
    // Where batches are missing in the middle, the one that was found ends before it.
    else low = Math.max(middle + 1, header === undefined ? 0 : endOf(header))
  }
  return low
}

/** A message that is there, by the batch that it is in. */
export type Unread = Pick<BatchHeader, 'appendedAtMs' | 'expiresAtMs'> & { offset: number }

/**
 * The first message of a range that is within retention. Undefined: there is none. What is past retention may be there for a day
 * longer, in a million batches: so where it is not one of the first two, it is a binary search.
 */
export async function findUnread(store: LogStore, range: Range, nowMs: number): Promise<Unread | undefined> {
  const { queueId, offset, end } = range
  const isThere = ({ expiresAtMs }: BatchHeader) => expiresAtMs > nowMs
  const unreadIn = (header: BatchHeader): Unread => ({ ...header, offset: Math.max(offset, header.base) })
  const [around] = await readHeader(store, queueId, offset, 'backward')
  if (around && endOf(around) > offset && isThere(around)) return unreadIn(around)
  const [next] = await readHeader(store, queueId, offset + 1, 'forward')
  if (next === undefined || isThere(next)) return next && unreadIn(next)
  const [found] = await readHeader(
    store,
    queueId,
    await findFirst(store, { ...range, offset: next.base, end }, isThere),
    'forward',
  )
  return found && isThere(found) ? unreadIn(found) : undefined
}

function readHeader(
  store: LogStore,
  queueId: number,
  fromOffset: number,
  direction: 'forward' | 'backward',
): Promise<BatchHeader[]> {
  return store.readHeaders({ queueId, fromOffset, direction, limit: 1, consistent: true })
}
