import {
  brotliCompressSync,
  brotliDecompressSync,
  constants as zlib,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib'
import type { Batch, Codec } from '../model.ts'
import type { BatchMessage } from '../protocol/pull.ts'

/**
 * A batch's messages are stored as the JSON text of an array of `BatchMessage`, compressed when that pays. Readers that
 * ask by size get the very text, spliced into their answer, so that it is never parsed on the way.
 */

/**
 * How hard to compress: a DynamoDB write unit costs as much as 94 ms of a 512 MB Lambda, a local disk costs nothing.
 * `docs/measurements.md` has the figures behind the choice of codecs.
 */
export type Compression = 'small' | 'fast'

const plain: Codec = 0
const zstd: Codec = 1
const brotli: Codec = 2

/** Below this a write unit of 1 KB is paid for anyway, and a codec's own overhead eats what it saves. */
const smallestWorthCompressing = 1024

const zstdFast = { params: { [zlib.ZSTD_c_compressionLevel]: 1 } }
const brotliSmall = { params: { [zlib.BROTLI_PARAM_QUALITY]: 5, [zlib.BROTLI_PARAM_MODE]: zlib.BROTLI_MODE_TEXT } }
/** What one batch may unfold to: a guard against damaged bytes, above `limits.maxBatchTextBytes`. */
const maxOutputLength = 16 * 1024 * 1024

export type EncodedText = { codec: Codec; bytes: Uint8Array }

export function encodeText(text: string, compression: Compression): EncodedText {
  const bytes = Buffer.from(text)
  if (bytes.length < smallestWorthCompressing) return { codec: plain, bytes }
  const packed: EncodedText =
    compression === 'small'
      ? { codec: brotli, bytes: brotliCompressSync(bytes, brotliSmall) }
      : { codec: zstd, bytes: zstdCompressSync(bytes, zstdFast) }
  return packed.bytes.length < bytes.length ? packed : { codec: plain, bytes }
}

export function decodeText(batch: Pick<Batch, 'codec' | 'bytes'>): string {
  const { codec, bytes } = batch
  if (codec === zstd) return zstdDecompressSync(bytes, { maxOutputLength }).toString()
  if (codec === brotli) return brotliDecompressSync(bytes, { maxOutputLength }).toString()
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
}

export const parseMessages = (text: string): BatchMessage[] => JSON.parse(text)
