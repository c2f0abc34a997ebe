import * as v from 'valibot'
import type { Core } from '../core.ts'
import { firstOfId } from '../failed/names.ts'
import type { Place } from '../failed/records.ts'
import { collectFailed, type FailedRange, type Seen } from '../failed/scan.ts'
import { type FailedScene, openFailed } from '../failed/scene.ts'
import { placeOf } from '../failed/trail.ts'
import { viewFailed } from '../failed/view.ts'
import { readMessagesAt, type StoredMessage } from '../log/read-at.ts'
import { PmqError } from '../protocol/errors.ts'
import { type FailedDetailView, type FailedListView, failedId, type ListFailedRequest } from '../protocol/failed.ts'
import { limits } from '../protocol/limits.ts'

type Filters = Pick<ListFailedRequest, 'state' | 'bizId' | 'error'>

/** Whether a failed message is what somebody looks for; the time is a matter of where is looked. */
export const isWanted =
  ({ state, bizId, error }: Filters) =>
  (seen: Seen): boolean =>
    (state === undefined || seen.state === state) &&
    (bizId === undefined || seen.record.bizId === bizId) &&
    (error === undefined || (seen.record.error ?? '').includes(error))

/** What a group failed to handle of a topic, page by page. A page costs what is looked at for it: see `collectFailed`. */
export async function listFailed(
  core: Core,
  groupName: string,
  topicName: string,
  request: ListFailedRequest,
): Promise<FailedListView> {
  const { order, limit, counts, ...range } = request
  const scene = await openFailed(core, groupName, topicName)
  const direction = order === 'newest' ? 'backward' : 'forward'
  const { found, next } = await collectFailed(
    core,
    scene,
    { ...range, direction },
    { limit, matches: isWanted(request) },
  )
  return {
    failed: found.map(viewFailed),
    ...(next !== undefined && { next }),
    ...(counts && { counts: await countFailed(core, scene, range) }),
  }
}

/** Counted where they are asked for, and not kept: what is kept would be a second write for each failure. */
async function countFailed(core: Core, scene: FailedScene, { fromMs, toMs }: Pick<FailedRange, 'fromMs' | 'toMs'>) {
  const counts = { retrying: 0, exhausted: 0, succeeded: 0, dropped: 0 }
  const range = { fromMs, toMs, direction: 'backward' } as const
  const { found, next } = await collectFailed(core, scene, range, {
    limit: limits.maxFailedExamined,
    matches: () => true,
  })
  for (const { state } of found) counts[state]++
  return { ...counts, isPartial: next !== undefined }
}

/** One failed message, with what is in the log of it: a read for the message, and one for each place of its history. */
export async function getFailed(
  core: Core,
  groupName: string,
  topicName: string,
  id: string,
): Promise<FailedDetailView> {
  const scene = await openFailed(core, groupName, topicName)
  const seen = await readOne(core, scene, id)
  if (!seen) throw new PmqError('not_found', `group ${groupName} has no failed message ${id} of topic ${topicName}`)
  const history = await readHistory(core, scene, seen.record.place)
  const { retryCount: _count, failed: _trail, ...message } = history.at(-1)?.message ?? {}
  return {
    ...viewFailed(seen),
    ...('body' in message && { message }),
    history: history.map(({ queueId, offset, message, appendedAtMs: atMs }) => {
      return { queueId, offset, retryCount: message.retryCount ?? 0, atMs }
    }),
  }
}

async function readOne(core: Core, scene: FailedScene, id: string): Promise<Seen | undefined> {
  if (!v.is(failedId, id)) return undefined
  const [record] = await core.store.readFailed([{ ...scene.failOf, first: firstOfId(id) }])
  return record && record.endsAtMs > core.clock.now() ? { record, state: scene.stateOf(record) } : undefined
}

const maxHistory = 20

/** The copies of a message in the fail topic, from one place back as far as they are there; the oldest first. */
async function readHistory(core: Core, { failTopic }: FailedScene, place: Place): Promise<StoredMessage[]> {
  const history: StoredMessage[] = []
  let next: Place | undefined = place
  while (next && history.length < maxHistory) {
    const { queueId, offset }: Place = next
    if (!failTopic.queues.some(queue => queue.queueId === queueId)) break
    const [stored]: StoredMessage[] = await readMessagesAt(core, queueId, [offset])
    if (!stored) break
    history.unshift(stored)
    const from = stored.message.failed?.from
    next = from && placeOf(from)
  }
  return history
}
