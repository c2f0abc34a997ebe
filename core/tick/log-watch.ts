import { endOf, isDueForDeletion } from '../log/boundaries.ts'
import { findTail } from '../log/log-end.ts'
import { findUnread, type Unread } from '../log/seek.ts'
import { createLru } from '../lru.ts'
import type { TopicSnapshot } from '../model.ts'
import type { Clock } from '../protocol/clock.ts'
import type { LogStore } from '../store.ts'

/**
 * What a container has seen of logs, by which it looks at them again for less: a queue in which nothing happens costs half a read
 * unit, however large its last batch is. For who measures, never for who appends: what it tells may be half a minute old.
 */
export type LogWatch = {
  /** The offset that a queue's next message will get. Groups of one topic share a look. */
  findEnd(topicName: string, queueId: number): Promise<number>
  /** An end that was found since a time: the queue reaches at least so far. */
  endSince(queueId: number, sinceMs: number): number | undefined
  /** The first message from an offset on, and before the end, that is within retention. */
  findUnread(queueId: number, offset: number, end: number): Promise<Unread | undefined>
}

/** Within one tick a queue is looked at once; the next one looks again. */
const sharedMs = 30_000
const maxRemembered = 50_000

type Deps = {
  store: LogStore
  clock: Clock
  /** A topic, for the checkpoints of its queues: one of an hour ago will do. */
  topicOf: (topicName: string) => Promise<TopicSnapshot | undefined>
}
type Found = { end: number; atMs: number; isQuiet: boolean }
type Seen = { begunAtMs: number; end: Promise<number>; last: Found | undefined }

export function createLogWatch({ store, clock, topicOf }: Deps): LogWatch {
  const ends = createLru<number, Seen>(maxRemembered)
  const unread = createLru<string, Unread>(maxRemembered)
  /** Queue → the offset before which all is past retention, and stays so. */
  const goneBefore = createLru<number, number>(maxRemembered)

  async function look(topicName: string, queueId: number, last: Found | undefined): Promise<Found> {
    const atMs = clock.now()
    if (last?.isQuiet) {
      // A read of nothing, instead of the last batch again. Whatever comes begins there, or behind that.
      const query = { queueId, fromOffset: last.end, limit: 1, consistent: false }
      const [next] = await store.readHeaders({ ...query, direction: 'forward' })
      if (next === undefined) return { ...last, atMs }
    }
    const tail = await findTail(store, queueId, { consistent: false })
    const isTrusted = tail !== undefined && !isDueForDeletion(tail, atMs)
    const checkpoint = isTrusted ? 1 : await checkpointOf(topicName, queueId)
    const end = Math.max(tail === undefined ? 1 : endOf(tail), checkpoint, last?.end ?? 1)
    return { end, atMs, isQuiet: end === last?.end }
  }

  async function checkpointOf(topicName: string, queueId: number): Promise<number> {
    const topic = await topicOf(topicName)
    return topic?.queues.find(queue => queue.queueId === queueId)?.checkpoint ?? 1
  }

  return {
    findEnd(topicName, queueId) {
      const before = ends.get(queueId)
      const begunAtMs = clock.now()
      const ageMs = begunAtMs - (before?.begunAtMs ?? 0)
      if (before && ageMs >= 0 && ageMs < sharedMs) return before.end
      const seen: Seen = {
        begunAtMs,
        last: before?.last,
        end: look(topicName, queueId, before?.last).then(found => {
          seen.last = found
          return found.end
        }),
      }
      // Who comes next looks again.
      seen.end.catch(() => {
        seen.begunAtMs = Number.NEGATIVE_INFINITY
      })
      ends.set(queueId, seen)
      return seen.end
    },
    endSince(queueId, sinceMs) {
      const last = ends.get(queueId)?.last
      return last && last.atMs >= sinceMs ? last.end : undefined
    },
    async findUnread(queueId, offset, end) {
      const nowMs = clock.now()
      const key = `${queueId} ${offset}`
      const known = unread.get(key)
      // A batch does not change; but one that is past retention is no answer any more.
      if (known && known.expiresAtMs > nowMs) return known
      const from = Math.max(offset, goneBefore.get(queueId) ?? offset)
      const found = await findUnread(store, { queueId, offset: from, end }, nowMs)
      // Whoever has not read so far has lost what is before.
      if (found === undefined || found.offset > from) goneBefore.set(queueId, found?.offset ?? end)
      if (found) unread.set(key, found)
      return found
    },
  }
}
