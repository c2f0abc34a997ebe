import type { Core } from '../core.ts'
import { type AppendRequest, type AppendResult, foundAs } from '../log/append.ts'
import { findPublish } from '../log/log-end.ts'
import { isWritable } from '../log/placement.ts'
import type { TopicSnapshot } from '../model.ts'
import type { PublishRequest } from '../protocol/publish.ts'
import { StoreError } from '../store.ts'
import type { Part } from './store-placement.ts'

/** Where a part of a publish went, and what became of it there. */
export type Routed = { queueId: number; result: AppendResult }
export type Unrouted = Omit<AppendRequest, 'queueId' | 'pinned' | 'lookBackMs'>

const lookUpsAtOnce = 25
/** Retried publishes without an age look back as far as a client's patience may reach. */
const defaultLookBackMs = 15 * 60_000

/** How far back an earlier attempt of a publish may be; undefined: there was none. */
export const lookBackOf = (request: Pick<PublishRequest, 'attempt' | 'attemptAgeMs'>): number | undefined =>
  (request.attempt ?? 1) > 1 ? (request.attemptAgeMs ?? defaultLookBackMs) : undefined

/**
 * Chooses the queue of a part: the one that it is pinned to; else the next in turn that is not contended. A container that
 * had to yield keeps to the queue that it found for a while, so that concurrent publishers settle on different ones.
 *
 * A retried publish does not move: its earlier attempt may have gone to any queue. It is looked for in all of them, and
 * if it is in none, this attempt stays in the queue where it begins, which it shares with the earlier one's first try.
 */
export async function routePart(core: Core, part: Part, append: Unrouted): Promise<Routed> {
  const { placement, request, snapshot } = part
  const lookBackMs = lookBackOf(request)
  const appendTo = async (queueId: number, pinned: boolean): Promise<Routed> => {
    const asked = { ...append, queueId, pinned, ...(lookBackMs !== undefined && { lookBackMs }) }
    return { queueId, result: await appendOrDoubt(core, asked) }
  }
  if (placement.queueId !== undefined) return appendTo(placement.queueId, true)

  const [first, ...others] = orderCandidates(core, snapshot, request.queueId ?? undefined)
  if (first === undefined) throw new RangeError(`topic ${snapshot.topic.name} has no writable queue`)
  if (lookBackMs !== undefined) {
    const found = await findElsewhere(core, snapshot, first, append, lookBackMs)
    return found ?? appendTo(first, true)
  }
  for (const queueId of [first, ...others]) {
    const routed = await appendTo(queueId, false)
    if (routed.result.outcome === 'contended') continue
    rememberQueue(core, snapshot.topic.name, queueId, queueId !== first)
    return routed
  }
  return appendTo(first, true)
}

/** A store that fails in the middle of an append leaves open whether it was stored. */
async function appendOrDoubt(core: Core, request: AppendRequest): Promise<AppendResult> {
  try {
    return await core.append(request)
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return error.kind === 'throttled' ? { outcome: 'throttled' } : { outcome: 'unknown', cause: error }
  }
}

async function findElsewhere(
  core: Core,
  snapshot: TopicSnapshot,
  first: number,
  { publishId, count }: Unrouted,
  lookBackMs: number,
): Promise<Routed | undefined> {
  const others = snapshot.queues.filter(queue => queue.queueId !== first)
  for (let from = 0; from < others.length; from += lookUpsAtOnce) {
    const looked = others.slice(from, from + lookUpsAtOnce).map(async ({ queueId }): Promise<Routed | undefined> => {
      const found = await findPublish(core, queueId, publishId, lookBackMs)
      return found && { queueId, result: foundAs(found, count) }
    })
    const found = (await Promise.all(looked)).find(routed => routed !== undefined)
    if (found) return found
  }
  return undefined
}

/** How long a container stays in the queue that it found by yielding: publishers that keep to themselves do not meet. */
const settleMs = 10_000

function rememberQueue(core: Core, topicName: string, queueId: number, hasYielded: boolean): void {
  const nowMs = core.clock.now()
  const settledUntilMs = hasYielded ? nowMs + settleMs : (core.lastQueues.get(topicName)?.settledUntilMs ?? 0)
  core.lastQueues.set(topicName, { queueId, settledUntilMs })
}

/** The writable queues, from the one to begin with on: the wanted one, or the next in turn; at first, any. */
function orderCandidates(core: Core, snapshot: TopicSnapshot, wanted: number | undefined): number[] {
  const writable = snapshot.queues.filter(isWritable).map(queue => queue.queueId)
  const last = core.lastQueues.get(snapshot.topic.name)
  const lastIndex = writable.indexOf(last?.queueId ?? 0)
  let start = writable.indexOf(wanted ?? 0)
  if (start === -1 && last !== undefined && lastIndex !== -1) {
    start = core.clock.now() < last.settledUntilMs ? lastIndex : (lastIndex + 1) % writable.length
  }
  if (start === -1) start = Math.floor(core.random() * writable.length)
  return [...writable.slice(start), ...writable.slice(0, start)]
}
