import { type Core, groupHasChanged } from '../core.ts'
import { forEachOf } from '../for-each-of.ts'
import { originOf } from '../group/fail-topics.ts'
import { findOffsetBefore } from '../log/seek.ts'
import type { QueueOffset } from '../model.ts'
import type { ChangeStopRequest, GroupView, ResetRequest, ResetView, Selection } from '../protocol/admin.ts'
import { PmqError } from '../protocol/errors.ts'
import { getGroup, readWorking, requireGroup } from './group-view.ts'

/**
 * Sets the offsets of a group's queues, forwards or back, whether the group is running or not: to an offset, a time, the
 * start or the end. Its consumers drop what they have in hand and go on from there. With `dryRun` it only tells.
 */
export async function resetOffsets(core: Core, groupName: string, request: ResetRequest): Promise<ResetView> {
  const selected = await select(core, groupName, request.of, isMeantToReset)
  const targets: { offset: QueueOffset; to: number }[] = []
  await forEachOf(selected, async offset => {
    targets.push({ offset, to: await findTarget(core, offset, request.to) })
  })
  targets.sort((a, b) => a.offset.queueId - b.offset.queueId)
  if (!request.dryRun) {
    await forEachOf(targets, ({ offset, to }) => core.store.resetOffset(offset, to))
    tellChanged(core, selected)
  }
  const queues = targets.map(({ offset: { topicName, queueId, offset: from }, to }) => {
    return { topicName, queueId, from, to, skips: Math.max(0, to - from), repeats: Math.max(0, from - to) }
  })
  return { queues }
}

/** Where a reset leads to: the last offset that the group will not see again. */
async function findTarget(core: Core, { topicName, queueId }: QueueOffset, to: ResetRequest['to']): Promise<number> {
  const end = await core.findEnd(topicName, queueId)
  if (to === 'end') return end - 1
  // Where there is something: what is gone is neither skipped nor repeated.
  if (to === 'start') return findOffsetBefore(core.store, queueId, 0, end)
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
  const selected = await select(core, groupName, of, isMeantToStop)
  await forEachOf(selected, offset => core.store.setStopped(offset, isStopped))
  tellChanged(core, selected)
  return getGroup(core, groupName)
}

function tellChanged(core: Core, offsets: readonly QueueOffset[]): void {
  for (const groupName of new Set(offsets.map(offset => offset.groupName))) groupHasChanged(core, groupName)
}

/**
 * What failed is handled again when it is due, wherever a group is in the topic itself: fail topics are reset only where
 * one is named. Else all retries since weeks would be repeated with a replay, and lost by a skip.
 */
const isMeantToReset = (of: Selection, offset: QueueOffset) =>
  of === 'all' ? offset.originTopicName === undefined : isNamed(of, offset)

/** A handler that is not to be called with messages of a topic is not to be called with those that failed either. */
const isMeantToStop = (of: Selection, offset: QueueOffset) =>
  of === 'all' || isNamed(of, offset) || ('topicName' in of && originOf(offset) === of.topicName)

const isNamed = (of: Exclude<Selection, 'all'>, { topicName, queueId }: QueueOffset) =>
  'topicName' in of ? topicName === of.topicName : queueId === of.queueId

/** The queues that are meant, of a broadcast group those of each member. Everything is meant only where that is said. */
async function select(
  core: Core,
  groupName: string,
  of: Selection,
  isMeant: (of: Selection, offset: QueueOffset) => boolean,
): Promise<QueueOffset[]> {
  const working = await readWorking(core, await requireGroup(core, groupName))
  const selected = working.flatMap(({ offsets }) => offsets.filter(offset => isMeant(of, offset)))
  if (of === 'all' || selected.length > 0) return selected
  const asked = 'topicName' in of ? `topic ${of.topicName}` : `id ${of.queueId}`
  throw new PmqError('not_found', `group ${groupName} has no queue of ${asked}`)
}
