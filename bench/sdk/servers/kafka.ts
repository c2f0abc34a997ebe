import { createServer, type Socket } from 'node:net'
import { bodyOf, queues, topicName } from '../acts.ts'
import { Decoder, Encoder, encodeBatch } from './kafka-coding.ts'
import { listen } from './listen.ts'

/**
 * A broker of Kafka as far as KafkaJS needs one: a single node that takes everything, with a topic that has messages
 * without an end, and groups of one member. Versions are the lowest that carry record batches.
 */
export async function serveKafka(): Promise<string> {
  const server = createServer(socket => void serve(socket).catch(() => socket.destroy()))
  const address = await listen(server)
  broker.port = Number(address.split(':')[1])
  return address
}

const broker = { nodeId: 1, host: '127.0.0.1', port: 0 }
const batchSize = 100
const batch = await encodeBatch(Array.from({ length: batchSize }, (_, n) => ({ key: `key-${n}`, value: bodyOf(n) })))
const partitions = Array.from({ length: queues }, (_, i) => i)
const memberId = 'member'
const generation = 1
const noError = 0

async function serve(socket: Socket): Promise<void> {
  socket.setNoDelay(true)
  let unread: Buffer = Buffer.alloc(0)
  for await (const chunk of socket) {
    unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk])
    while (unread.length >= 4 && unread.length >= 4 + unread.readInt32BE(0)) {
      const size = unread.readInt32BE(0)
      answer(socket, new Decoder(unread.subarray(4, 4 + size)))
      unread = unread.subarray(4 + size)
    }
  }
}

function answer(socket: Socket, request: Decoder) {
  const apiKey = request.readInt16()
  request.readInt16()
  const correlationId = request.readInt32()
  request.readString()
  const body = apis.get(apiKey)?.answer(request)
  if (!body) throw new Error(`there is no answer to api ${apiKey}`)
  const header = Buffer.alloc(8)
  header.writeInt32BE(4 + body.length, 0)
  header.writeInt32BE(correlationId, 4)
  socket.cork()
  socket.write(header)
  socket.write(body)
  socket.uncork()
}

type Api = { version: number; answer(request: Decoder): Buffer }

/** By Kafka's numbers. */
const apis = new Map<number, Api>([
  [0, { version: 3, answer: produce }],
  [1, { version: 4, answer: fetchBatches }],
  [2, { version: 1, answer: listOffsets }],
  [3, { version: 1, answer: describe }],
  [8, { version: 2, answer: commit }],
  [9, { version: 1, answer: fetchOffsets }],
  [10, { version: 0, answer: () => writeBroker(new Encoder().writeInt16(noError)).buffer }],
  [11, { version: 0, answer: join }],
  [12, { version: 0, answer: () => new Encoder().writeInt16(noError).buffer }],
  [13, { version: 0, answer: () => new Encoder().writeInt16(noError).buffer }],
  [14, { version: 0, answer: sync }],
  [18, { version: 2, answer: listApis }],
])

function listApis(): Buffer {
  const versions = [...apis].map(([key, { version }]) =>
    new Encoder()
      .writeInt16(key)
      .writeInt16(key === 18 ? 0 : version)
      .writeInt16(version),
  )
  return new Encoder().writeInt16(noError).writeArray(versions).writeInt32(0).buffer
}

function writeBroker(encoder: Encoder): Encoder {
  return encoder.writeInt32(broker.nodeId).writeString(broker.host).writeInt32(broker.port)
}

function describe(): Buffer {
  const { nodeId } = broker
  const described = partitions.map(partition =>
    new Encoder()
      .writeInt16(noError)
      .writeInt32(partition)
      .writeInt32(nodeId)
      .writeArray([nodeId])
      .writeArray([nodeId]),
  )
  const topic = new Encoder().writeInt16(noError).writeString(topicName).writeInt8(0).writeArray(described)
  return new Encoder()
    .writeArray([writeBroker(new Encoder()).writeString(null)])
    .writeInt32(nodeId)
    .writeArray([topic]).buffer
}

function join(request: Decoder): Buffer {
  request.readString()
  request.readInt32()
  request.readString()
  request.readString()
  const [protocol] = request.readArray(d => ({ name: d.readString(), metadata: d.readBytes() ?? Buffer.alloc(0) }))
  const member = new Encoder().writeString(memberId).writeBytes(protocol?.metadata ?? Buffer.alloc(0))
  return new Encoder()
    .writeInt16(noError)
    .writeInt32(generation)
    .writeString(protocol?.name ?? '')
    .writeString(memberId)
    .writeString(memberId)
    .writeArray([member]).buffer
}

function sync(request: Decoder): Buffer {
  request.readString()
  request.readInt32()
  request.readString()
  const [assignment] = request.readArray(d => ({ member: d.readString(), bytes: d.readBytes() ?? Buffer.alloc(0) }))
  return new Encoder().writeInt16(noError).writeBytes(assignment?.bytes ?? Buffer.alloc(0)).buffer
}

/** Nothing is committed yet. */
function fetchOffsets(): Buffer {
  const none = partitions.map(partition =>
    new Encoder().writeInt32(partition).writeInt64(-1).writeString('').writeInt16(noError),
  )
  return new Encoder().writeArray([new Encoder().writeString(topicName).writeArray(none)]).buffer
}

function commit(): Buffer {
  const done = partitions.map(partition => new Encoder().writeInt32(partition).writeInt16(noError))
  return new Encoder().writeArray([new Encoder().writeString(topicName).writeArray(done)]).buffer
}

function listOffsets(): Buffer {
  const starts = partitions.map(partition =>
    new Encoder().writeInt32(partition).writeInt16(noError).writeInt64(-1).writeInt64(0),
  )
  return new Encoder().writeArray([new Encoder().writeString(topicName).writeArray(starts)]).buffer
}

function fetchBatches(request: Decoder): Buffer {
  for (let i = 0; i < 4; i++) request.readInt32()
  request.readInt8()
  const topics = request.readArray(topic => ({
    name: topic.readString(),
    partitions: topic.readArray(d => ({ partition: d.readInt32(), offset: d.readInt64(), maxBytes: d.readInt32() })),
  }))
  const answers = topics.map(topic => {
    const read = topic.partitions.map(({ partition, offset, maxBytes }) => {
      const first = Math.floor(Number(offset.toString()) / batchSize) * batchSize
      const count = Math.max(1, Math.floor(maxBytes / batch.length))
      const highWatermark = first + (count + 1) * batchSize
      return new Encoder()
        .writeInt32(partition)
        .writeInt16(noError)
        .writeInt64(highWatermark)
        .writeInt64(highWatermark)
        .writeArray([])
        .writeBytes(batchesFrom(first, count))
    })
    return new Encoder().writeString(topic.name).writeArray(read)
  })
  return new Encoder().writeInt32(0).writeArray(answers).buffer
}

function batchesFrom(first: number, count: number): Buffer {
  const bytes = Buffer.allocUnsafe(count * batch.length)
  for (let i = 0; i < count; i++) {
    batch.copy(bytes, i * batch.length)
    bytes.writeBigInt64BE(BigInt(first + i * batchSize), i * batch.length)
  }
  return bytes
}

let appended = 0

function produce(request: Decoder): Buffer {
  request.readString()
  request.readInt16()
  request.readInt32()
  const topics = request.readArray(topic => ({
    name: topic.readString(),
    partitions: topic.readArray(d => ({ partition: d.readInt32(), bytes: d.readBytes() })),
  }))
  const answers = topics.map(topic => {
    const stored = topic.partitions.map(({ partition }) =>
      new Encoder().writeInt32(partition).writeInt16(noError).writeInt64(appended++).writeInt64(-1),
    )
    return new Encoder().writeString(topic.name).writeArray(stored)
  })
  return new Encoder().writeArray(answers).writeInt32(0).buffer
}
