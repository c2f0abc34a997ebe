import { publish } from '../../core/client/publish.ts'
import { type Core, createCore, defaultSettings, type Settings } from '../../core/core.ts'
import { parseMessages } from '../../core/log/encoding.ts'
import { type Clock, systemClock } from '../../core/protocol/clock.ts'
import type { PublishRequest, PublishResponse } from '../../core/protocol/publish.ts'
import type { BatchMessage } from '../../core/protocol/pull.ts'
import type { Store } from '../../core/store.ts'
import { newSecret } from '../../functions/edge/core.ts'
import { silentBus } from '../../functions/edge/lazy-bus.ts'
import type { ReadMessage } from '../checker/history.ts'
import { seededRandom } from '../support/random.ts'

let ids = 0

/** A container of its own over a shared store: what it remembers, no other container knows. */
export function createContainer(
  store: Store,
  options: { clock?: Clock; seed?: number; settings?: Partial<Settings> } = {},
): Core {
  return createCore({
    store,
    clock: options.clock ?? systemClock,
    random: seededRandom(options.seed ?? 1),
    newId: () => `id-${++ids}`,
    newSecret,
    bus: { ...silentBus },
    settings: { ...defaultSettings, topicCacheMs: 0, groupCacheMs: 0, ...options.settings },
  })
}

export const hourMs = 3_600_000

/** Makes a topic whose queues have ids of their own, so that many topics can share one store. */
export async function makeTopic(
  store: Store,
  queues: number,
  retentionMs = hourMs,
): Promise<{ name: string; queueIds: number[] }> {
  const topicId = await store.takeIds('topic', 1)
  const firstQueueId = await store.takeIds('queue', queues)
  const name = `topic-${topicId}`
  const queueIds = Array.from({ length: queues }, (_, i) => firstQueueId + i)
  const records = queueIds.map(queueId => ({ topicName: name, queueId, checkpoint: 1 }))
  await store.createTopic({ name, topicId, retentionMs, createdAtMs: 0 }, records)
  return { name, queueIds }
}

/** Publishes as a request would; bodies are the values. */
export function send(
  container: Core,
  topicName: string,
  values: readonly string[],
  fields: Partial<PublishRequest> & { key?: string; toQueue?: number } = {},
): Promise<PublishResponse> {
  const { key, toQueue, ...rest } = fields
  const msgs = values.map(body => ({
    body,
    ...(key !== undefined && { key }),
    ...(toQueue !== undefined && { partitionInfo: { queueId: toQueue } }),
  }))
  return publish(container, { topicName, msgs, ...rest })
}

/** The place of the first message of a publish that has to have succeeded. */
export function placeOf(response: PublishResponse): { queueId: number; offset: number } {
  const run = response.offsets?.[0]
  if (!response.suc || run?.queueId === undefined || run.offset === undefined) {
    throw new Error(`the publish was refused: ${response.msg}`)
  }
  return { queueId: run.queueId, offset: run.offset }
}

/** What a reader behind `afterOffset` is given next. `nameOf`: what a message is called. */
export async function readAfter(
  container: Core,
  queueId: number,
  afterOffset: number,
  nameOf: (message: BatchMessage) => string = ({ body }) => body,
): Promise<{ messages: ReadMessage[]; skipped: number }> {
  const read = await container.reader.read({ queueId, afterOffset, maxTextLength: 1e6, maxMessages: 1e6 })
  const messages = read.batches.flatMap(batch =>
    parseMessages(batch.text).map((message, i) => ({ offset: batch.base + i, value: nameOf(message) })),
  )
  return { messages: messages.filter(message => message.offset > afterOffset), skipped: read.skipped }
}

/** Everything that a reader behind `afterOffset` is given until there is no more. */
export async function readAll(container: Core, queueId: number, afterOffset = 0): Promise<ReadMessage[]> {
  const all: ReadMessage[] = []
  for (let at = afterOffset; ; ) {
    const { messages } = await readAfter(container, queueId, at)
    const last = messages.at(-1)
    if (!last) return all
    all.push(...messages)
    at = last.offset
  }
}
