import { limits } from '../protocol/limits.ts'
import type { BatchMessage } from '../protocol/pull.ts'
import { type Compression, type EncodedText, encodeText } from './encoding.ts'

/** A part of a publish that becomes one batch: messages `from` to `from + count - 1` of those given. */
export type Cut = EncodedText & { from: number; count: number; text: string }

/**
 * Cuts messages into as few batches as fit into an item of the store. The same messages are always cut the same way, so
 * that a retried publish finds the batches of its earlier attempt.
 */
export function cutIntoBatches(messages: readonly BatchMessage[], compression: Compression): Cut[] {
  return cut(
    messages.map(message => JSON.stringify(message)),
    0,
    compression,
  )
}

function cut(texts: readonly string[], from: number, compression: Compression): Cut[] {
  const text = `[${texts.join(',')}]`
  const isSmallEnough = texts.length === 1 || text.length <= limits.maxBatchTextBytes
  const encoded = isSmallEnough ? encodeText(text, compression) : undefined
  if (encoded && (encoded.bytes.length <= limits.maxBatchBytes || texts.length === 1)) {
    return [{ from, count: texts.length, text, ...encoded }]
  }
  const half = texts.length >> 1
  return [...cut(texts.slice(0, half), from, compression), ...cut(texts.slice(half), from + half, compression)]
}
