import type { BatchMessage, PulledBatch } from '../../../core/protocol/pull.ts'
import { createFifo } from '../fifo.ts'
import type { Message } from '../message.ts'
import { callSizeOf, type Gauge, sizeOf } from './gauge.ts'

/** Keeps what was pulled until it is taken. */
export type Buffer = {
  /** Adds a batch from its message `firstIndex` on. `appendedAtMs`: when it was appended, by the monotonic clock. */
  add(batch: PulledBatch, firstIndex: number, appendedAtMs: number): void
  /** Takes up to `max` messages in offset order, and no more when their texts have come to `maxBytes`. */
  take(max: number, maxBytes?: number): Message[]
  /** When the next message to be taken was appended, by the monotonic clock; undefined if there is none. */
  readonly nextAppendedAtMs: number | undefined
  clear(): void
}

/** Where the messages are from, and what measures them. */
export type BufferOptions = { topicName: string; queueId: number; gauge: Gauge }

type Entry = { batch: PulledBatch; appendedAtMs: number }

const noHead: Readonly<Record<string, string>> = Object.freeze({})

/** Batches wait as they came; a message becomes an object of its own only when it is taken. */
export function createBuffer(options: BufferOptions): Buffer {
  const { topicName, queueId, gauge } = options
  const entries = createFifo<Entry>()
  /** Index of the next message in the oldest batch. */
  let next = 0
  let messages = 0
  let bytes = 0

  function toMessage(batch: PulledBatch, index: number, message: BatchMessage): Message {
    return {
      topicName,
      queueId,
      offset: batch.offset + index,
      key: message.key,
      tag: message.tag ?? '',
      bizId: message.bizId ?? '',
      head: message.head ?? noHead,
      body: message.body,
      traceId: message.traceId ?? '',
      retryCount: message.retryCount ?? 0,
      publishedAtMs: batch.time,
      sendIp: message.sendIp ?? '',
    }
  }

  return {
    add(batch, firstIndex, appendedAtMs) {
      const { msgs } = batch
      if (firstIndex >= msgs.length) return
      // Measured before anything is changed: a batch that cannot be read leaves the buffer as it is.
      let added = 0
      for (let index = firstIndex; index < msgs.length; index++) added += sizeOf(msgs[index] as BatchMessage)
      // Only the first batch after a restart can begin in its middle, and then nothing is before it.
      if (messages === 0) next = firstIndex
      entries.push({ batch, appendedAtMs })
      messages += msgs.length - firstIndex
      bytes += added
      gauge.add(msgs.length - firstIndex, added)
    },
    take(max, maxBytes) {
      const taken: Message[] = []
      let takenBytes = 0
      let callBytes = 0
      for (let entry = entries.peek(); entry && taken.length < max; entry = entries.peek()) {
        const { batch } = entry
        const { msgs } = batch
        const end = Math.min(msgs.length, next + max - taken.length)
        for (; next < end; next++) {
          if (maxBytes !== undefined && callBytes >= maxBytes) break
          const message = msgs[next] as BatchMessage
          takenBytes += sizeOf(message)
          if (maxBytes !== undefined) callBytes += callSizeOf(message)
          taken.push(toMessage(batch, next, message))
        }
        if (next < msgs.length) break
        entries.shift()
        next = 0
      }
      messages -= taken.length
      bytes -= takenBytes
      gauge.remove(taken.length, takenBytes)
      return taken
    },
    get nextAppendedAtMs() {
      return entries.peek()?.appendedAtMs
    },
    clear() {
      entries.clear()
      gauge.remove(messages, bytes)
      next = 0
      messages = 0
      bytes = 0
    },
  }
}
