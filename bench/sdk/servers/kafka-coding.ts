import { createRequire } from 'node:module'

/** KafkaJS's own encoders, which it does not give types for. A stand-in that only a benchmark uses may build on them. */
const require = createRequire(import.meta.url)

export type Encoder = {
  readonly buffer: Buffer
  writeInt8(value: number): Encoder
  writeInt16(value: number): Encoder
  writeInt32(value: number): Encoder
  writeInt64(value: number | bigint): Encoder
  writeString(value: string | null): Encoder
  writeBytes(value: Buffer): Encoder
  /** Encoders, or numbers as int32. */
  writeArray(items: readonly (Encoder | number)[]): Encoder
  writeBuffer(value: Buffer): Encoder
}

export type Decoder = {
  readInt8(): number
  readInt16(): number
  readInt32(): number
  readInt64(): { toString(): string }
  readString(): string | null
  readBytes(): Buffer | null
  readArray<T>(read: (decoder: Decoder) => T): T[]
}

export const Encoder: new () => Encoder = require('kafkajs/src/protocol/encoder.js')
export const Decoder: new (bytes: Buffer) => Decoder = require('kafkajs/src/protocol/decoder.js')

type Record = { offsetDelta: number; key: string; value: string }
const encodeRecord: (record: Record) => Encoder = require('kafkajs/src/protocol/recordBatch/record/v0/index.js')
const { RecordBatch } = require('kafkajs/src/protocol/recordBatch/v0/index.js') as {
  RecordBatch(batch: { records: Encoder[]; lastOffsetDelta: number }): Promise<Encoder>
}

/** A record batch as a broker stores it. It begins with its first offset, 0, outside of what its checksum covers. */
export async function encodeBatch(messages: { key: string; value: string }[]): Promise<Buffer> {
  const records = messages.map((message, offsetDelta) => encodeRecord({ ...message, offsetDelta }))
  const { buffer } = await RecordBatch({ records, lastOffsetDelta: records.length - 1 })
  return Buffer.from(buffer)
}
