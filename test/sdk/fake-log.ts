import assert from 'node:assert/strict'
import type { Clock } from '../../core/protocol/clock.ts'
import type { FailuresRequest } from '../../core/protocol/failures.ts'
import type { PublishMessage, PublishRequest, PublishResponse, PublishRun } from '../../core/protocol/publish.ts'
import type { PulledBatch, PullRequest, PullResponse } from '../../core/protocol/pull.ts'

type StoredBatch = PulledBatch & { publishId: string; firstIndex: number }
type Queue = { topicName: string; queueId: number; batches: StoredBatch[]; nextOffset: number }

/**
 * Topics, queues and batches of the stand-in service. It is strict where the client has duties: an attempt behind one that
 * may have been stored must repeat its queue and messages, raise `attempt`, and say how long ago that was; any other is as
 * the first.
 */
export function createFakeLog(clock: Clock) {
  const topics = new Map<string, Queue[]>()
  const queues = new Map<number, Queue>()
  const publishes = new Map<
    string,
    { text: string; isInDoubt: boolean; queueId: number | null | undefined; attempt: number; atMs: number }
  >()
  const waiting = new Set<() => void>()

  function append(queue: Queue, publishId: string, messages: PublishMessage[], firstIndex: number): number {
    const offset = queue.nextOffset
    const msgs = messages.map(({ tag, bizId, head, body, traceId, key, retryCount }) =>
      JSON.parse(JSON.stringify({ tag, bizId, head, body, traceId, key, retryCount })),
    )
    queue.batches.push({ offset, time: clock.now(), msgs, publishId, firstIndex })
    queue.nextOffset += msgs.length
    for (const wake of [...waiting]) wake()
    return offset
  }

  function checkAttempt(request: PublishRequest, mayBeStored: boolean) {
    const { publishId, attempt, attemptAgeMs, queueId } = request
    assert.ok(publishId, 'every publish has a publishId')
    const text = JSON.stringify(request.msgs)
    const earlier = publishes.get(publishId)
    if (!earlier?.isInDoubt) {
      assert.equal(attempt, 1, 'nothing can be stored yet')
      assert.equal(attemptAgeMs, 0)
    } else {
      assert.equal(text, earlier.text, 'a later attempt repeats the messages')
      assert.equal(queueId, earlier.queueId, 'a later attempt names the same queue')
      assert.ok((attempt ?? 0) > earlier.attempt, 'a later attempt has a higher number')
      assert.ok((attemptAgeMs ?? 0) >= clock.monotonic() - earlier.atMs, 'and says how long ago the first was')
    }
    const isInDoubt = mayBeStored || (earlier?.isInDoubt ?? false)
    const atMs = earlier?.isInDoubt ? earlier.atMs : clock.monotonic()
    publishes.set(publishId, { text, isInDoubt, queueId, attempt: attempt ?? 0, atMs })
  }

  return {
    queues,
    createTopic(topicName: string, count: number): number[] {
      const made = Array.from({ length: count }, (_, index): Queue => {
        return { topicName, queueId: queues.size + 1 + index, batches: [], nextOffset: 1 }
      })
      topics.set(topicName, made)
      for (const queue of made) queues.set(queue.queueId, queue)
      return made.map(({ queueId }) => queueId)
    },
    queueIds: (topicName: string) => topics.get(topicName)?.map(({ queueId }) => queueId),
    /** Puts messages straight into a queue, as one batch. */
    put(queueId: number, messages: (string | PublishMessage)[]) {
      const queue = queues.get(queueId)
      assert.ok(queue)
      append(
        queue,
        '',
        messages.map(message => (typeof message === 'string' ? { body: message } : message)),
        0,
      )
    },
    /** Stores failures in the first queue of their topic, once for each publishId. */
    putFailures({ topicName, msgs, publishId }: NonNullable<FailuresRequest['failMsg']>) {
      const [queue] = topics.get(topicName ?? '') ?? []
      assert.ok(queue, `no topic ${topicName}`)
      assert.ok(publishId, 'failures have a publishId')
      const messages = (msgs ?? []).map(({ id: _, ...message }) => message)
      if (!queue.batches.some(batch => batch.publishId === publishId)) append(queue, publishId, messages, 0)
    },
    /** Removes the batches up to an offset, as the end of retention does. */
    trim(queueId: number, upToOffset: number) {
      const queue = queues.get(queueId)
      if (queue) queue.batches = queue.batches.filter(batch => batch.offset > upToOffset)
    },
    bodies: (queueId: number) => queues.get(queueId)?.batches.flatMap(({ msgs }) => msgs.map(({ body }) => body)) ?? [],
    /** All messages of a topic, in offset order per queue. */
    stored: (topicName: string) =>
      (topics.get(topicName) ?? []).flatMap(({ queueId, batches }) =>
        batches.flatMap(({ offset, msgs }) =>
          msgs.map((message, index) => ({ queueId, offset: offset + index, message })),
        ),
      ),

    checkAttempt,
    publish(request: PublishRequest, refuse?: (queueId: number) => string | undefined): PublishResponse {
      const topic = topics.get(request.topicName ?? '')
      if (!topic) return { suc: false, sleepTime: 0, msg: `topic_${request.topicName}_is_not_exist!` }
      const byQueue = new Map<Queue, { index: number; message: PublishMessage }[]>()
      for (const [index, message] of (request.msgs ?? []).entries()) {
        const queue = message.key
          ? topic[[...message.key].reduce((sum, char) => sum + char.charCodeAt(0), 0) % topic.length]
          : (topic.find(({ queueId }) => queueId === request.queueId) ?? topic[0])
        assert.ok(queue)
        byQueue.set(queue, [...(byQueue.get(queue) ?? []), { index, message }])
      }
      const offsets: PublishRun[] = []
      for (const [queue, entries] of byQueue) {
        const publishId = request.publishId ?? ''
        const found = queue.batches.find(batch => batch.publishId === publishId)
        const error = found ? undefined : refuse?.(queue.queueId)
        const messages = entries.map(({ message }) => message)
        const offset = found?.offset ?? (error ? 0 : append(queue, publishId, messages, entries[0]?.index ?? 0))
        for (const [position, { index }] of entries.entries()) {
          const run = { first: index, count: 1 }
          offsets.push(error ? { ...run, error } : { ...run, queueId: queue.queueId, offset: offset + position })
        }
      }
      const suc = offsets.every(({ error }) => error === undefined)
      return { suc, sleepTime: 0, offsets, ...(suc ? {} : { msg: 'not all of it could be stored' }) }
    },

    async pull(request: PullRequest, signal: AbortSignal | undefined): Promise<PullResponse> {
      const queue = queues.get(request.queueId)
      if (!queue) return { suc: false, msg: `queueId_${request.queueId}_is_not_exist！` }
      const read = () => {
        const batches: PulledBatch[] = []
        let bytes = 0
        for (const { offset, time, msgs } of queue.batches) {
          if (offset + msgs.length - 1 <= request.offsetStart) continue
          bytes += msgs.reduce((sum, { body }) => sum + body.length, 0)
          if (batches.length > 0 && bytes > (request.maxBytes ?? 0)) break
          batches.push({ offset, time, msgs })
        }
        return batches
      }
      if (read().length === 0 && request.waitMs) {
        const woken = new AbortController()
        const wake = () => woken.abort()
        waiting.add(wake)
        signal?.addEventListener('abort', wake, { once: true })
        await clock.sleep(request.waitMs, woken.signal)
        waiting.delete(wake)
      }
      return { suc: true, batches: read(), nowMs: clock.now() }
    },
    /** Ends all pulls that are held. */
    release() {
      for (const wake of [...waiting]) wake()
    },
  }
}

export type FakeLog = ReturnType<typeof createFakeLog>
