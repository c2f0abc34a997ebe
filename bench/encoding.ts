import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  deflateRawSync,
  inflateRawSync,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib'
import { readRecords } from '../demo/records.ts'
import { median } from './measure.ts'

/**
 * What Node's codecs make of batches of real records: stored bytes, DynamoDB's write units, and the time for packing and
 * unpacking. `core/log/encoding.ts` is chosen by these figures.
 */
type Candidate = { name: string; pack: (bytes: Buffer) => Buffer; unpack: (bytes: Buffer) => Buffer }

const zstd = (level: number): Candidate => ({
  name: `zstd ${level}`,
  pack: bytes => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: level } }),
  unpack: bytes => zstdDecompressSync(bytes),
})
const deflate = (level: number): Candidate => ({
  name: `deflate ${level}`,
  pack: bytes => deflateRawSync(bytes, { level }),
  unpack: bytes => inflateRawSync(bytes),
})
const brotli = (quality: number): Candidate => ({
  name: `brotli ${quality}`,
  pack: bytes => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }),
  unpack: bytes => brotliDecompressSync(bytes),
})
const candidates = [
  zstd(1),
  zstd(3),
  zstd(9),
  zstd(15),
  deflate(1),
  deflate(6),
  deflate(9),
  brotli(4),
  brotli(5),
  brotli(9),
]

const rounds = 60

function micros(act: () => unknown): number {
  const times = Array.from({ length: rounds }, () => {
    const startedAt = performance.now()
    act()
    return (performance.now() - startedAt) * 1000
  })
  return Math.round(median(times))
}

const records = await readRecords()
const films = records.slice(0, 1000)
// One name in each of many languages, then the next: nothing repeats but the shape.
const names = records.filter(record => record.body.startsWith('{"locale"')).filter((_, i) => i % 41 === 0)
const batchOf = (from: typeof records, count: number) =>
  Buffer.from(JSON.stringify(from.slice(0, count).map(({ body }) => ({ body }))))
const samples = {
  '10 films': batchOf(films, 10),
  '100 films': batchOf(films, 100),
  '1,000 films': batchOf(films, 1000),
  '100 country names in many languages': batchOf(names, 100),
}

for (const [sample, bytes] of Object.entries(samples)) {
  console.log(`${sample}: ${bytes.length} bytes of JSON`)
  console.table(
    Object.fromEntries(
      candidates.map(({ name, pack, unpack }) => {
        const packed = pack(bytes)
        return [
          name,
          {
            bytes: packed.length,
            'write units': Math.ceil((packed.length + 100) / 1024),
            'pack µs': micros(() => pack(bytes)),
            'unpack µs': micros(() => unpack(packed)),
          },
        ]
      }),
    ),
  )
}
