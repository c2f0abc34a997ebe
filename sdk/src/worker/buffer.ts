import type { BatchMessage, PulledBatch } from '../../../core/protocol/pull.ts'
import { createFifo } from '../fifo.ts'
import type { Message } from '../message.ts'

/** Keeps what was pulled until a handler takes it. */
export type Buffer = {
  /** Adds a batch from its message `firstIndex` on. */
  add(batch: PulledBatch, firstIndex: number): void
  /** Takes up to `max` messages in offset order. */
  take(max: number): Message[]
  clear(): void
  readonly messages: number
  readonly bytes: number
  /** False from when it is full until it is half empty: pulls then come in good sizes instead of one by one. */
  readonly wantsMore: boolean
}

/** Where the messages are from, and how many may wait. The answer that fills the buffer may pass the bounds. */
export type BufferOptions = { topicName: string; queueId: number; maxMessages: number; maxBytes: number }

/** What a message takes besides its texts. */
const overheadBytes = 100
const noHead: Readonly<Record<string, string>> = Object.freeze({})

/** Batches wait as they came; a message becomes an object of its own only when it is taken. */
export function createBuffer(options: BufferOptions): Buffer {
  const { topicName, queueId, maxMessages, maxBytes } = options
  const batches = createFifo<PulledBatch>()
  /** Index of the next message in the oldest batch. */
  let next = 0
  let messages = 0
  let bytes = 0
  let isFilling = true

  function measure() {
    if (messages >= maxMessages || bytes >= maxBytes) isFilling = false
    else if (messages * 2 <= maxMessages && bytes * 2 <= maxBytes) isFilling = true
  }

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
    }
  }

  return {
    add(batch, firstIndex) {
      const { msgs } = batch
      if (firstIndex >= msgs.length) return
      // Measured before anything is changed: a batch that cannot be read leaves the buffer as it is.
      let added = 0
      for (let index = firstIndex; index < msgs.length; index++) added += sizeOf(msgs[index])
      // Only the first batch after a restart can begin in its middle, and then nothing is before it.
      if (messages === 0) next = firstIndex
      batches.push(batch)
      messages += msgs.length - firstIndex
      bytes += added
      measure()
    },
    take(max) {
      const taken: Message[] = []
      for (let batch = batches.peek(); batch && taken.length < max; batch = batches.peek()) {
        const { msgs } = batch
        const end = Math.min(msgs.length, next + max - taken.length)
        for (; next < end; next++) {
          const message = msgs[next] as BatchMessage
          bytes -= sizeOf(message)
          taken.push(toMessage(batch, next, message))
        }
        if (next < msgs.length) break
        batches.shift()
        next = 0
      }
      messages -= taken.length
      measure()
      return taken
    },
    clear() {
      batches.clear()
      next = 0
      messages = 0
      bytes = 0
      isFilling = true
    },
    get messages() {
      return messages
    },
    get bytes() {
      return bytes
    },
    get wantsMore() {
      return isFilling
    },
  }
}

/** Counts a character as a byte, as the engine stores all text that has no characters beyond Latin-1. */
function sizeOf(message: BatchMessage | undefined): number {
  if (!message) return 0
  let bytes = overheadBytes + message.body.length
  for (const name in message.head) bytes += name.length + (message.head[name]?.length ?? 0)
  return bytes
}
