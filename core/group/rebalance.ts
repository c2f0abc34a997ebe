import { type Core, groupHasChanged } from '../core.ts'
import type { GroupSnapshot } from '../model.ts'
import { assignQueues } from './assign.ts'
import { decideHandover, headingFor } from './handover.ts'
import { addMissingOffsets } from './offsets.ts'

/**
 * Brings a group's assignment up to what was asked for. Each queue moves by one conditional write, which fences its
 * former owner; last, `rbVersion` rises, by which consumers hear of it. Two runs at once are harmless: what one has
 * changed is a conflict for the other, which reads again. A run that dies half-way leaves `asked > done` and queues whose
 * `rbVersion` is ahead of the group's, so that the next run finishes and tells.
 */
export async function rebalance(core: Core, groupName: string): Promise<'done' | 'unknown_group' | 'busy'> {
  for (let run = 0; run < maxRuns; run++) {
    const snapshot = await core.store.readGroup(groupName)
    if (snapshot === undefined) return 'unknown_group'
    if (!isRebalanceDue(core, snapshot)) return 'done'
    const outcome = await runOnce(core, snapshot)
    if (outcome === 'done') {
      groupHasChanged(core, groupName)
      return 'done'
    }
  }
  return 'busy'
}

/**
 * Whether a group owes a rebalance: one was asked for, a run died before it told what it had moved, or an owner takes
 * longer to leave than it may.
 */
export function isRebalanceDue(core: Core, { group, offsets }: GroupSnapshot): boolean {
  const latestMs = core.clock.now() - core.settings.handoverTimeoutMs
  return (
    group.rebalanceAsked > group.rebalanceDone ||
    offsets.some(
      ({ rbVersion, leavingSinceMs }) => rbVersion > group.rbVersion || (leavingSinceMs ?? latestMs + 1) <= latestMs,
    )
  )
}

/** Each conflict means that another run or a new request has moved on; after this many the tick may try. */
const maxRuns = 10

async function runOnce(core: Core, snapshot: GroupSnapshot): Promise<'done' | 'conflict'> {
  const { group, members, subscriptions } = snapshot
  const offsets = await addMissingOffsets(core, snapshot)
  const subscribed = new Set(subscriptions.map(subscription => subscription.topicName))
  const queues = offsets.filter(offset => subscribed.has(offset.topicName))
  const current = new Map(offsets.map(offset => [offset.queueId, headingFor(offset)]))
  const wanted = assignQueues(members, queues, current)
  const alive = new Set(members.map(member => member.consumerId))
  const nowMs = core.clock.now()

  let moved = offsets.some(offset => offset.rbVersion > group.rbVersion)
  for (const offset of offsets) {
    const ownership = decideHandover(offset, {
      wanted: wanted.get(offset.queueId) ?? 0,
      isOwnerAlive: alive.has(offset.consumerId),
      nowMs,
      timeoutMs: core.settings.handoverTimeoutMs,
    })
    if (ownership === undefined) continue
    const outcome = await core.store.moveQueue({
      groupName: group.name,
      queueOffsetId: offset.queueOffsetId,
      expectedOffsetVersion: offset.offsetVersion,
      expectedConsumerId: offset.consumerId,
      expectedNextConsumerId: offset.nextConsumerId,
      ...ownership,
      rbVersion: group.rbVersion + 1,
    })
    if (outcome === 'conflict') return 'conflict'
    moved = true
  }
  return core.store.finishRebalance({
    groupName: group.name,
    asked: group.rebalanceAsked,
    moved,
    expectedRbVersion: group.rbVersion,
    nowMs,
  })
}
