import type { Core } from '../core.ts'
import { decodeText, parseMessages } from '../log/encoding.ts'
import { lookBack } from '../log/log-end.ts'
import { hashKey, type Placed, type Placement } from '../log/placement.ts'
import type { BatchHeader, TopicSnapshot } from '../model.ts'
import { limits } from '../protocol/limits.ts'
import type { PublishRun } from '../protocol/publish.ts'
import type { BatchMessage } from '../protocol/pull.ts'
import { lookBackOf } from './route-part.ts'
import { type InternalRequest, toBatchMessage } from './store-placement.ts'

/** What an earlier attempt has stored of a publish: the indexes of the messages, and where they are. */
export type Earlier = { indexes: Set<number>; runs: PublishRun[] }

/** Whether this is another attempt of a publish whose messages go where the queues of the topic make them go. */
export const mayHaveMoved = (request: InternalRequest): boolean =>
  request.publishId != null &&
  lookBackOf(request) !== undefined &&
  (request.msgs ?? []).some(({ key, partitionInfo }) => key || partitionInfo)

/**
 * When the queues of a topic have changed, a publish is cut into other parts, for other queues, than by its earlier
 * attempt: what that one has stored is found in none of them. So all queues are looked through for what bears the name of
 * the publish. Only if a part of it would not be looked for there anyway, the parts are read: which messages they hold is
 * known by what is in them. Undefined: nothing has moved; `others`: the name is that of other messages.
 */
export async function findMoved(
  core: Core,
  snapshot: TopicSnapshot,
  request: InternalRequest,
  { placements }: Placed,
): Promise<Earlier | 'others' | undefined> {
  const { publishId } = request
  if (publishId == null || !mayHaveMoved(request)) return undefined
  const total = request.msgs?.length ?? 0
  const names = new Map(placements.map(placement => [nameOf(publishId, placement, total), placement]))
  const stored = await findParts(core, snapshot, publishId, lookBackOf(request) ?? 0)
  const isLookedFor = (part: BatchHeader) => {
    const placement = names.get(publishId + part.publishId.slice(publishId.length).replace(/ ?\/\d+$/, ''))
    return placement !== undefined && (placement.queueId ?? part.queueId) === part.queueId
  }
  if (stored.every(isLookedFor)) return undefined
  return recognise(core, request, stored)
}

/** What is left to be stored. */
export function without({ placements, refusals }: Placed, { indexes }: Earlier): Placed {
  const left = placements.map(each => ({ ...each, indexes: each.indexes.filter(index => !indexes.has(index)) }))
  return {
    placements: left.filter(placement => placement.indexes.length > 0),
    refusals: refusals.filter(({ index }) => !indexes.has(index)),
  }
}

/**
 * Names a part of a publish by the messages in it: were they others, it would not be the same part. All of them are the
 * publish itself.
 */
export function nameOf(publishId: string, { indexes, pinned }: Placement, total: number): string {
  if (indexes.length === total) return publishId
  return `${publishId} ${pinned ? 'k' : 'u'}${indexes[0]}.${indexes.length}.${hashKey(indexes.join()).toString(36)}`
}

const queuesAtOnce = 25

async function findParts(core: Core, { queues }: TopicSnapshot, publishId: string, lookBackMs: number) {
  const parts: BatchHeader[] = []
  const isPart = (header: BatchHeader) => `${header.publishId} `.startsWith(`${publishId} `)
  for (let from = 0; from < queues.length; from += queuesAtOnce) {
    const looked = queues.slice(from, from + queuesAtOnce).map(async ({ queueId }) => {
      for await (const page of lookBack(core, queueId, lookBackMs)) parts.push(...page.filter(isPart))
    })
    await Promise.all(looked)
  }
  return parts.sort((a, b) => a.queueId - b.queueId || a.base - b.base)
}

/** Finds the messages of stored parts among those of the request. Of messages that are the same, any will do. */
async function recognise(core: Core, request: InternalRequest, parts: readonly BatchHeader[]) {
  const open = new Map<string, number[]>()
  for (const index of request.msgs?.keys() ?? []) {
    const text = textOf(toBatchMessage(request, index))
    const same = open.get(text)
    if (same) same.push(index)
    else open.set(text, [index])
  }
  const earlier: Earlier = { indexes: new Set(), runs: [] }
  for (const { queueId, base } of parts) {
    const query = { queueId, fromOffset: base, maxBatches: 1, maxBytes: limits.maxBatchBytes, consistent: true }
    const [batch] = await core.store.readBatches(query)
    if (batch?.base !== base) continue
    for (const [position, message] of parseMessages(decodeText(batch)).entries()) {
      const same = open.get(textOf(message))
      if (same === undefined) return 'others'
      const index = same.shift()
      if (index !== undefined) add(earlier, index, queueId, base + position)
    }
  }
  return earlier
}

function add({ indexes, runs }: Earlier, index: number, queueId: number, offset: number): void {
  indexes.add(index)
  const last = runs.at(-1)
  const isNext = last?.queueId === queueId && last.first + last.count === index
  if (isNext && (last.offset ?? 0) + last.count === offset) last.count++
  else runs.push({ first: index, count: 1, queueId, offset })
}

/** A message by all that was published of it: another attempt may come from another address, or know less of its past. */
const textOf = ({ sendIp: _sendIp, failed: _failed, ...message }: BatchMessage) => JSON.stringify(message)
