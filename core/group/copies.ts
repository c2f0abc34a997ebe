import type { Core } from '../core.ts'
import type { Group, GroupCopy, GroupSnapshot, Origin, Subscription } from '../model.ts'
import { consumerCopyName } from './copy-names.ts'
import { alignOffsets } from './offsets.ts'
import { addSubscription, endSubscription, tellAssignment } from './subscriptions.ts'

/**
 * Copies of groups. A *sub-environment* has a copy of its own of each group that one of its consumers joins: a group like
 * any other, made when it is first asked for. A *broadcast* group has a copy for each of its members: there the queues
 * belong to that member from the beginning, at "now", and go with it. It has a partition of its own, so a thousand of them
 * do not meet anywhere; but it is nobody's group but its member's: it is not listed, subscribes nowhere, and nothing is
 * ever moved in it.
 *
 * A copy is first recorded at its origin, then filled; who changes an origin's subscriptions first changes them and then
 * looks which copies there are. So one of the two meets the other.
 */

/** A group of the name that a copy has to have is something else. */
export class NameTakenError extends Error {
  override name = 'NameTakenError' as const
}

/** Makes a copy of a group, unless it is there, and brings it in line. */
export async function ensureCopy(core: Core, source: Group, copyName: string, origin: Origin): Promise<Group> {
  const { allowedIps, deniedIps, maxConsumers, mode } = source
  const made: Group = {
    ...newGroup(copyName, core.clock.now()),
    ...('consumerId' in origin ? {} : { mode, allowedIps, deniedIps, maxConsumers }),
    origin,
  }
  await core.store.createGroup(made)
  const copy = await core.store.readGroup(copyName)
  // It was removed at once, with its origin or its consumer: whoever asked for it will find out.
  if (copy === undefined) return made
  if (copy.group.origin?.groupName !== origin.groupName) {
    throw new NameTakenError(`there is a group ${copyName} already, which is no copy of ${origin.groupName}`)
  }
  await alignCopy(core, await core.store.readSubscriptions(origin.groupName), copy)
  return copy.group
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

/** Gives a copy the subscriptions of its origin, and a copy for one consumer the queues of its topics. */
async function alignCopy(core: Core, wanted: readonly Subscription[], copy: GroupSnapshot): Promise<void> {
  const { store } = core
  const wantedNames = new Set(wanted.map(({ topicName }) => topicName))
  for (const { topicName } of copy.subscriptions) {
    if (!wantedNames.has(topicName)) await endSubscription(core, copy, topicName)
  }
  let hasNew = false
  for (const subscription of wanted) {
    const { topicName, groupName: _source, topicId: _id, ...settings } = subscription
    const own = copy.subscriptions.find(candidate => candidate.topicName === topicName)
    if (own === undefined) {
      const topic = await store.readTopic(topicName)
      if (topic) await addSubscription(core, copy.group, topic, settings)
      hasNew = true
    } else if (Object.entries(settings).some(([name, value]) => own[name as keyof typeof settings] !== value)) {
      await store.updateSubscription(copy.group.name, topicName, settings)
    }
  }
  const { origin } = copy.group
  if (origin && 'consumerId' in origin) {
    const { hasAdded, hasRemoved } = await alignOffsets(core, copy, origin.consumerId)
    if (hasNew || hasAdded || hasRemoved) await tellAssignment(core, copy.group.name)
  } else if (hasNew) {
    await core.bus.groupChanged(copy.group.name)
  }
}

/** Brings all copies of a group in line with it; those whose consumer is no member any more are removed. */
export async function alignCopies(core: Core, source: GroupSnapshot): Promise<void> {
  const { group, copies, members, subscriptions } = source
  const leftOver = leftOverCopies(source)
  for (const { copyName } of leftOver) await removeGroup(core, copyName)
  for (const kept of copies) {
    const copy = leftOver.includes(kept) ? undefined : await core.store.readGroup(kept.copyName)
    if (copy) await alignCopy(core, subscriptions, copy)
  }
  if (group.mode !== 'broadcast') return
  const there = new Set(copies.map(copy => copy.consumerId))
  for (const { consumerId } of members) {
    if (there.has(consumerId)) continue
    const { name } = group
    await ensureCopy(core, group, consumerCopyName(name, consumerId), { groupName: name, consumerId })
  }
}

/** Copies for consumers that are not members any more. */
export function leftOverCopies({ copies, members }: GroupSnapshot): GroupCopy[] {
  const memberIds = new Set(members.map(member => member.consumerId))
  return copies.filter(({ consumerId }) => consumerId !== undefined && !memberIds.has(consumerId))
}

/** Removes a group: what it subscribes to and how far it was, and last itself, so that repeating it finishes. */
export async function removeGroup(core: Core, groupName: string): Promise<void> {
  const snapshot = await core.store.readGroup(groupName)
  if (snapshot === undefined) return
  const topics = new Set([...snapshot.subscriptions, ...snapshot.offsets].map(({ topicName }) => topicName))
  for (const topicName of topics) await endSubscription(core, snapshot, topicName)
  await core.store.removeGroup(snapshot.group)
}
