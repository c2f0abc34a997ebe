import type { Core } from '../core.ts'
import type { BatchMessage } from '../protocol/pull.ts'
import { endOf } from './boundaries.ts'
import { parseMessages } from './encoding.ts'

/** A message with what its batch says of it. */
export type StoredMessage = {
  queueId: number
  offset: number
  message: BatchMessage
  appendedAtMs: number
  expiresAtMs: number
}

/** Messages of a queue by their offsets, in offset order; what is past retention is left out. One read for each batch at most. */
export async function readMessagesAt(
  { reader }: Pick<Core, 'reader'>,
  queueId: number,
  offsets: readonly number[],
): Promise<StoredMessage[]> {
  const found: StoredMessage[] = []
  const wanted = [...new Set(offsets)].sort((a, b) => a - b)
  while (wanted[0] !== undefined) {
    const [offset] = wanted
    const batch = await reader.batchAt(queueId, offset)
    const end = batch ? endOf(batch) : offset + 1
    const messages = batch ? parseMessages(batch.text) : []
    const here = wanted.findIndex(each => each >= end)
    for (const each of wanted.splice(0, here < 0 ? wanted.length : here)) {
      const message = batch && messages[each - batch.base]
      if (!batch || !message) continue
      const { appendedAtMs, expiresAtMs } = batch
      found.push({ queueId, offset: each, message, appendedAtMs, expiresAtMs })
    }
  }
  return found
}
