import type { Core } from '../core.ts'
import { type AppendRequest, type AppendResult, findPublish } from '../log/append.ts'
import type { TopicSnapshot } from '../model.ts'
import { StoreError } from '../store.ts'
import type { Part } from './store-placement.ts'

/** Where a part of a publish went, and what became of it there. */
export type Routed = { queueId: number; result: AppendResult }
export type Unrouted = Omit<AppendRequest, 'queueId' | 'pinned' | 'lookBackMs'>

/** Retried publishes without an age look back as far as a client's patience may reach. */
const defaultLookBackMs = 15 * 60_000

/**
 * Chooses the queue of a part: the one that it is pinned to; else the first that is not contended, and this container
 * keeps to that from then on, so that concurrent publishers settle on different queues.
 *
 * A retried publish does not move: its earlier attempt may have gone to any queue. It is looked for in all of them, and
 * if it is in none, this attempt stays in the queue where it begins, which it shares with the earlier one's first try.
 */
export async function routePart(core: Core, part: Part, append: Unrouted): Promise<Routed> {
  const { placement, request, snapshot } = part
  const lookBackMs = (request.attempt ?? 1) > 1 ? (request.attemptAgeMs ?? defaultLookBackMs) : undefined
  const appendTo = async (queueId: number, pinned: boolean): Promise<Routed> => {
    const asked = { ...append, queueId, pinned, ...(lookBackMs !== undefined && { lookBackMs }) }
    return { queueId, result: await appendOrDoubt(core, asked) }
  }
  if (placement.queueId !== undefined) return appendTo(placement.queueId, true)

  const [first, ...others] = orderCandidates(core, snapshot, request.queueId ?? undefined)
  if (first === undefined) throw new RangeError(`topic ${snapshot.topic.name} has no writable queue`)
  if (lookBackMs !== undefined) {
    const found = await findElsewhere(core, snapshot, first, append.publishId, lookBackMs)
    return found ?? appendTo(first, true)
  }
  for (const queueId of [first, ...others]) {
    const routed = await appendTo(queueId, false)
    if (routed.result.outcome === 'contended') continue
    core.preferredQueues.set(snapshot.topic.name, queueId)
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
  publishId: string,
  lookBackMs: number,
): Promise<Routed | undefined> {
  for (const { queueId } of snapshot.queues) {
    if (queueId === first) continue
    const found = await findPublish(core, queueId, publishId, lookBackMs)
    if (found) return { queueId, result: { outcome: 'found', base: found.base } }
  }
  return undefined
}

/** The writable queues, from the wanted or preferred one on; a container without a preference begins anywhere. */
function orderCandidates(core: Core, snapshot: TopicSnapshot, wanted: number | undefined): number[] {
  const writable = snapshot.queues.filter(queue => !queue.readOnly).map(queue => queue.queueId)
  const known = [wanted, core.preferredQueues.get(snapshot.topic.name)].find(
    id => id !== undefined && writable.includes(id),
  )
  const start = known === undefined ? Math.floor(core.random() * writable.length) : writable.indexOf(known)
  return [...writable.slice(start), ...writable.slice(0, start)]
}
