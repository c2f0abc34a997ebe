import type { Queue } from '../model.ts'
import type { PublishMessage } from '../protocol/publish.ts'

/**
 * Where the messages of one publish go. Those of one key, and those sent to a named queue, are pinned: order within the
 * queue is what they are there for. The others go together to one queue, whichever takes them.
 */
export type Placement = {
  /** Indexes of the messages in the publish, rising. */
  indexes: number[]
  /** The queue to begin with; undefined: the caller's choice. Only unpinned messages have none. */
  queueId?: number
  pinned: boolean
}

/** Whether messages may be appended to a queue. */
export const isWritable = (queue: Queue) => queue.readOnlySinceMs === undefined

export type Refusal = { index: number; error: string }

export type Placed = { placements: Placement[]; refusals: Refusal[] }

export function placeMessages(
  topicName: string,
  queues: readonly Queue[],
  messages: readonly PublishMessage[],
): Placed {
  const writable = queues.filter(isWritable)
  const pinned = new Map<number, number[]>()
  const free: number[] = []
  const refusals: Refusal[] = []
  const pin = (queueId: number, index: number) => {
    const indexes = pinned.get(queueId)
    if (indexes) indexes.push(index)
    else pinned.set(queueId, [index])
  }

  for (const [index, message] of messages.entries()) {
    const asked = message.partitionInfo
    if (asked) {
      if (writable.some(queue => queue.queueId === asked.queueId)) pin(asked.queueId, index)
      else if ((asked.strictMode ?? 1) === 0) free.push(index)
      else refusals.push({ index, error: notWritable(topicName, asked.queueId, writable) })
    } else if (message.key) {
      const queue = writable[hashKey(message.key) % writable.length]
      if (queue) pin(queue.queueId, index)
    } else {
      free.push(index)
    }
  }

  const placements: Placement[] = [...pinned].map(([queueId, indexes]) => ({ indexes, queueId, pinned: true }))
  if (free.length > 0) placements.push({ indexes: free, pinned: false })
  return { placements, refusals }
}

function notWritable(topicName: string, queueId: number, writable: readonly Queue[]): string {
  return `queue ${queueId} is not a writable queue of topic ${topicName}; those are ${writable.map(q => q.queueId).join(', ')}`
}

/** FNV-1a over UTF-16 code units, with a last mixing step so that the low bits of short keys spread. 32 bits. */
export function hashKey(key: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
