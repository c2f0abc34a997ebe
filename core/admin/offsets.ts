import { type Core, groupHasChanged } from '../core.ts'
import { findOffsetBefore } from '../log/seek.ts'
import type { GroupSnapshot, QueueOffset } from '../model.ts'
import type { ChangeStopRequest, GroupView, ResetRequest, ResetView, Selection } from '../protocol/admin.ts'
import { PmqError } from '../protocol/errors.ts'
import { forEachOf } from './for-each-of.ts'
import { getGroup, requireGroup } from './groups.ts'

/**
 * Sets the offsets of a group's queues, forwards or back, whether the group is running or not: to an offset, a time, the
 * start or the end. Its consumers drop what they have in hand and go on from there. With `dryRun` it only tells.
 */
export async function resetOffsets(core: Core, groupName: string, request: ResetRequest): Promise<ResetView> {
  const snapshot = await requireGroup(core, groupName)
  const selected = select(snapshot, request.of)
  const views: ResetView['queues'] = []
  await forEachOf(selected, async offset => {
    const to = await findTarget(core, offset, request.to)
    const { topicName, queueId, offset: from } = offset
    views.push({ topicName, queueId, from, to, skips: Math.max(0, to - from), repeats: Math.max(0, from - to) })
  })
  views.sort((a, b) => a.queueId - b.queueId)
  if (request.dryRun) return { queues: views }
  await forEachOf(selected, async ({ queueOffsetId, queueId }) => {
    const view = views.find(candidate => candidate.queueId === queueId)
    if (view) await core.store.resetOffset({ groupName, queueOffsetId }, view.to)
  })
  groupHasChanged(core, groupName)
  return { queues: views }
}

/** Where a reset leads to: the last offset that the group will not see again. */
async function findTarget(core: Core, { topicName, queueId }: QueueOffset, to: ResetRequest['to']): Promise<number> {
  const end = await core.findEnd(topicName, queueId)
  if (to === 'end') return end - 1
  if (to === 'start') return 0
  if ('timeMs' in to) return findOffsetBefore(core.store, queueId, to.timeMs, end)
  if (to.offset < end) return to.offset
  throw new PmqError('bad_request', `queue ${queueId} ends at offset ${end - 1}; ${to.offset} lies behind it`)
}

/** Stops queues of a group, or starts them again: nothing of them is handed out meanwhile, and nothing is lost. */
export async function changeStop(
  core: Core,
  groupName: string,
  { of }: ChangeStopRequest,
  isStopped: boolean,
): Promise<GroupView> {
  const selected = select(await requireGroup(core, groupName), of)
  await forEachOf(selected, ({ queueOffsetId }) => core.store.setStopped({ groupName, queueOffsetId }, isStopped))
  groupHasChanged(core, groupName)
  return getGroup(core, groupName)
}

/** The queues that are meant. Everything is meant only where that is said. */
function select({ group, offsets }: GroupSnapshot, of: Selection): QueueOffset[] {
  if (of === 'all') return offsets
  const selected = offsets.filter(({ topicName, queueId }) =>
    'topicName' in of ? topicName === of.topicName : queueId === of.queueId,
  )
  if (selected.length > 0) return selected
  const asked = 'topicName' in of ? `topic ${of.topicName}` : `id ${of.queueId}`
  throw new PmqError('not_found', `group ${group.name} has no queue of ${asked}`)
}
