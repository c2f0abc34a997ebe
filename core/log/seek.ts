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

/** When the message at an offset was appended; where that is past retention, the first one behind it. */
export async function findAppendTime(store: LogStore, queueId: number, offset: number): Promise<number | undefined> {
  const [before] = await readHeader(store, queueId, offset, 'backward')
  if (before && endOf(before) > offset) return before.appendedAtMs
  const [behind] = await readHeader(store, queueId, offset, 'forward')
  return behind?.appendedAtMs
}

function readHeader(
  store: LogStore,
  queueId: number,
  fromOffset: number,
  direction: 'forward' | 'backward',
): Promise<BatchHeader[]> {
  return store.readHeaders({ queueId, fromOffset, direction, limit: 1, consistent: true })
}
