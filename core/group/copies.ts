import { type Core, groupHasChanged } from '../core.ts'
import type { Group, GroupCopy, GroupSnapshot, Member, Origin } from '../model.ts'
import { StoreError } from '../store.ts'
import { alignWith } from './align.ts'
import { consumerCopyName, hasOwnOffsets, kindOf } from './copy-names.ts'
import { originOf } from './fail-topics.ts'
import { selectMembers } from './members.ts'
import { endSubscription } from './subscriptions.ts'

/**
 * Copies of groups. A *sub-environment* has a copy of its own of each group that one of its consumers joins: a group like
 * any other, made when it is first asked for. A *broadcast* group has a copy for each of its members: there the queues
 * belong to that member from the beginning, at "now", and go with it. It has a partition of its own, so a thousand of them
 * do not meet anywhere; but it is nobody's group but its member's: it is not listed, subscribes nowhere, and nothing is
 * ever moved in it.
 *
 * A copy is first recorded at its origin, then filled, and then its origin is looked at again; who changes an origin's
 * subscriptions first changes them and then looks at its copies. So one of the two meets the other.
 */

/** A group of the name that a copy has to have is something else. */
export class NameTakenError extends Error {
  override name = 'NameTakenError' as const
}

/** Makes a copy of a group, unless it is there, and brings it in line. */
export async function ensureCopy(core: Core, source: Group, copyName: string, origin: Origin): Promise<Group> {
  if ('subEnv' in origin && origin.subEnv.includes('~')) {
    throw new NameTakenError(
      `sub-environment ${origin.subEnv}: names with a tilde are kept for consumers' copies of broadcast groups`,
    )
  }
  const { allowedIps, deniedIps, maxConsumers, mode } = source
  const made: Group = {
    ...newGroup(copyName, core.clock.now()),
    mode,
    ...('consumerId' in origin ? {} : { allowedIps, deniedIps, maxConsumers }),
    origin,
  }
  await core.store.createGroup(made)
  const copy = (await core.store.readGroup(copyName))?.group
  // It was removed at once, with its origin or its consumer: whoever asked for it will find out.
  if (copy === undefined) return made
  if (copy.origin?.groupName !== origin.groupName) {
    throw new NameTakenError(`there is a group ${copyName} already, which is no copy of ${origin.groupName}`)
  }
  await alignWith(core, origin.groupName, [copyName], await findAble(core, source))
  if ('consumerId' in origin) await removeIfLate(core, copyName, origin.consumerId)
  return copy
}

/** Which members of a broadcast group may be given queues; undefined: all. */
async function findAble(core: Core, group: Group): Promise<ReadonlySet<number> | undefined> {
  const { allowedIps, deniedIps, maxConsumers } = group
  if (hasOwnOffsets(group) || (allowedIps.length === 0 && deniedIps.length === 0 && maxConsumers === 0))
    return undefined
  const snapshot = await core.store.readGroup(group.name)
  return snapshot && ableOf(snapshot)
}

const ableOf = (snapshot: GroupSnapshot) => new Set(selectMembers(snapshot).map(({ consumerId }) => consumerId))

/** A consumer that leaves takes its copy along: if it was there by then. */
async function removeIfLate(core: Core, copyName: string, consumerId: number): Promise<void> {
  const consumers = await core.store.readConsumers([consumerId])
  if (consumers.length === 0) await removeGroup(core, copyName)
}

/** A group that was just made, balanced and open to all. */
export function newGroup(name: string, nowMs: number): Group {
  return {
    name,
    mode: 'balanced',
    allowedIps: [],
    deniedIps: [],
    maxConsumers: 0,
    rbVersion: 0,
    metaVersion: 1,
    version: 1,
    rebalanceAsked: 0,
    rebalanceDone: 0,
    rebalancedAtMs: 0,
    rebalancedVersion: 0,
    createdAtMs: nowMs,
  }
}

/**
 * Brings all copies of a group in line with it; those whose consumer is no member any more are removed. True: something
 * was not as it should be.
 */
export async function alignCopies(core: Core, source: GroupSnapshot): Promise<boolean> {
  const { group, copies } = source
  const leftOver = leftOverCopies(source)
  for (const { copyName } of leftOver) await removeGroup(core, copyName)
  const kept = copies.filter(copy => !leftOver.includes(copy)).map(({ copyName }) => copyName)
  const hasChanged = await alignWith(core, group.name, kept, hasOwnOffsets(group) ? undefined : ableOf(source))
  if (hasOwnOffsets(group)) return hasChanged
  const without = membersWithoutCopy(source)
  for (const { consumerId } of without) {
    const { name } = group
    await ensureCopy(core, group, consumerCopyName(name, consumerId), { groupName: name, consumerId })
  }
  return hasChanged || leftOver.length > 0 || without.length > 0
}

/** Members of a broadcast group that have no copy: who joins makes it, if it lives for long enough. */
export function membersWithoutCopy({ group, copies, members }: GroupSnapshot): Member[] {
  if (group.mode !== 'broadcast') return []
  const there = new Set(copies.map(copy => copy.consumerId))
  return members.filter(({ consumerId }) => !there.has(consumerId))
}

/** Copies for consumers that are not members any more. */
export function leftOverCopies({ copies, members }: GroupSnapshot): GroupCopy[] {
  const memberIds = new Set(members.map(member => member.consumerId))
  return copies.filter(({ consumerId }) => consumerId !== undefined && !memberIds.has(consumerId))
}

const maxRuns = 10

/**
 * Removes a group: its copies, what it subscribes to and how far it was, and last itself, so that repeating it finishes.
 * `has_members`: somebody has joined it; what was removed by then stays removed.
 */
export async function removeGroup(core: Core, groupName: string): Promise<'removed' | 'has_members'> {
  for (let run = 0; run < maxRuns; run++) {
    const snapshot = await core.store.readGroup(groupName)
    if (snapshot === undefined) return 'removed'
    if (snapshot.members.length > 0) return 'has_members'
    for (const consumerId of snapshot.lost) await core.store.leaveGroup(groupName, consumerId)
    for (const { copyName } of snapshot.copies) {
      if ((await removeGroup(core, copyName)) === 'has_members') return 'has_members'
    }
    const topics = new Set([...snapshot.subscriptions, ...snapshot.offsets].map(originOf))
    for (const topicName of topics) await endSubscription(core, snapshot, topicName)
    if (kindOf(snapshot.group) === 'group') {
      for (const target of await core.store.readTargets({ groupName })) await core.store.removeTarget(target)
    }
    // Others may have put something there meanwhile.
    if (topics.size > 0 || snapshot.copies.length > 0) continue
    if ((await core.store.removeGroup(snapshot.group)) === 'conflict') continue
    groupHasChanged(core, groupName)
    return 'removed'
  }
  throw new StoreError('throttled', `group ${groupName} changes too fast to be removed`)
}
