import { type Core, groupHasChanged } from '../core.ts'
import type { GroupSnapshot, QueueOffset, Subscription } from '../model.ts'
import { StoreError } from '../store.ts'
import { alignCopies, leftOverCopies, membersWithoutCopy } from './copies.ts'
import { originOf } from './fail-topics.ts'
import { decideHandover, type Handover, moveOf, type Ownership } from './handover.ts'
import { replacedMembers } from './members.ts'
import { alignOffsets } from './offsets.ts'
import { planOwners } from './plan.ts'

/**
 * Brings a group's assignment to what its members, topics and queues ask for. Each queue takes its next step by one
 * conditional write: an owner that lives is asked to leave, one that is gone or late is fenced (`handover.ts`). Last,
 * `rbVersion` rises, by which consumers hear of it.
 *
 * Two runs at once are harmless, though one may still be moving queues by what it has read when the other closes: it
 * meets a conflict when it comes to close, and then begins again, whatever is asked. So the last that moved a queue has
 * looked at the whole afterwards, and told. A run that dies leaves `asked > done`, or queues that are not where they
 * belong, or whose `rbVersion` is ahead of the group's: the next run finishes.
 *
 * A claimed group only gets offsets for the queues that its topics have got; of a broadcast group, and of one that has
 * sub-environments, the copies are brought in line.
 */
export async function rebalance(core: Core, groupName: string): Promise<'done' | 'unknown_group' | 'busy'> {
  const moves = { areUntold: false }
  let failures = 0
  for (let run = 0; run < maxRuns; run++) {
    try {
      const outcome = await runOnce(core, groupName, moves)
      if (outcome === 'conflict') continue
      if (outcome === 'unknown_group') return outcome
      if (outcome === 'done' || run > 0) groupHasChanged(core, groupName)
      // Who has asked meanwhile has told nobody else (`ask.ts`).
      if (outcome !== 'asked_again') return 'done'
      moves.areUntold = false
    } catch (error) {
      // What was under way may have been done, and nobody else knows of it: a run from the beginning finds out.
      if (!(error instanceof StoreError) || failures++ === maxFailures) throw error
    }
  }
  return 'busy'
}

/** Each conflict means that another run or a new request has moved on; after this many the tick may try. */
const maxRuns = 20
const maxFailures = 3

/** `areUntold`: moves of this call, certain or not, of which no close of its own has told; others may have closed before. */
type Moves = { areUntold: boolean }

async function runOnce(
  core: Core,
  groupName: string,
  moves: Moves,
): Promise<'done' | 'asked_again' | 'nothing_owed' | 'conflict' | 'unknown_group'> {
  const snapshot = await core.store.readGroup(groupName)
  if (snapshot === undefined) return 'unknown_group'
  if (!moves.areUntold && !isRebalanceOwed(core, snapshot)) return 'nothing_owed'

  const { group } = snapshot
  await alignCopies(core, snapshot)
  const aligned = group.mode === 'broadcast' ? undefined : await alignOffsets(core, snapshot, 0)
  const offsets = aligned?.offsets ?? []
  moves.areUntold ||= aligned?.hasRemoved === true
  for (const [offset, ownership] of nextSteps(core, snapshot, offsets)) {
    const move = moveOf(group, offset, ownership)
    const wereUntold = moves.areUntold
    moves.areUntold = true
    if ((await core.store.moveQueue(move)) === 'moved') continue
    moves.areUntold = wereUntold
    return 'conflict'
  }
  // Nothing is theirs any more, and nothing will be.
  for (const consumerId of snapshot.lost) await core.store.leaveGroup(groupName, consumerId)
  return core.store.finishRebalance({
    groupName,
    asked: group.rebalanceAsked,
    moved: moves.areUntold || hasUntold(snapshot),
    expectedRbVersion: group.rbVersion,
    nowMs: core.clock.now(),
  })
}

/**
 * Whether a group owes a rebalance: one was asked for, a run died before it told of its moves, or a queue has a step to
 * take, such as from an owner that takes longer to leave than it may.
 */
export function isRebalanceOwed(core: Core, snapshot: GroupSnapshot): boolean {
  const { group, offsets } = snapshot
  if (group.rebalanceAsked > group.rebalanceDone || hasUntold(snapshot) || snapshot.lost.length > 0) return true
  if (leftOverCopies(snapshot).length > 0 || membersWithoutCopy(snapshot).length > 0) return true
  return nextSteps(core, snapshot, offsets).length > 0
}

const hasUntold = ({ group, offsets }: GroupSnapshot) => offsets.some(offset => offset.rbVersion > group.rbVersion)

/** What is to be done with which queues, by the plan for the group as it was read. */
function nextSteps(core: Core, snapshot: GroupSnapshot, offsets: readonly QueueOffset[]): [QueueOffset, Ownership][] {
  if (snapshot.group.mode !== 'balanced') return []
  const wanted = planOwners(snapshot, offsets)
  const timeouts = new Map(snapshot.subscriptions.map(each => [each.topicName, handoverTimeoutMs(core, each)]))
  const ownerOf = describeOwners(snapshot)
  const nowMs = core.clock.now()
  return offsets.flatMap(offset => {
    const ownership = decideHandover(offset, {
      wanted: wanted.get(offset.queueId) ?? 0,
      owner: ownerOf(offset),
      nowMs,
      timeoutMs: timeouts.get(originOf(offset)) ?? core.settings.handoverTimeoutMs,
    })
    return ownership ? [[offset, ownership]] : []
  })
}

/** Whoever was replaced before it has stopped in order had something in hand, as one that was given up. */
function describeOwners({ members, lost }: GroupSnapshot): (offset: QueueOffset) => Handover['owner'] {
  const owners = new Map<number, Handover['owner']>(lost.map(consumerId => [consumerId, 'lost']))
  const replaced = replacedMembers(members)
  for (const { consumerId, hasStopped } of members) {
    owners.set(consumerId, !replaced.has(consumerId) ? 'alive' : hasStopped ? 'gone' : 'lost')
  }
  return ({ consumerId }) => owners.get(consumerId) ?? 'gone'
}

/** What an owner may need beside a handler call that runs: to hear that it is to leave, and to commit. */
const handoverMarginMs = 10_000

/** A handler that may take its time is given it. */
function handoverTimeoutMs({ settings }: Core, { timeoutSeconds }: Subscription): number {
  return timeoutSeconds === 0 ? settings.handoverTimeoutMs : timeoutSeconds * 1000 + handoverMarginMs
}
