import { readGroup } from '../client/find.ts'
import type { Core } from '../core.ts'
import { hasOwnOffsets } from '../group/copy-names.ts'
import { viewDeaths } from '../group/deaths.ts'
import { topicNamesOf } from '../group/fail-topics.ts'
import { selectMembers } from '../group/members.ts'
import { findBacklog } from '../group/stalls.ts'
import { settingsOf } from '../group/subscriptions.ts'
import { unhandledTopics } from '../group/unhandled.ts'
import { findUnread } from '../log/seek.ts'
import type { Consumer, GroupSnapshot, Member, QueueOffset, Subscription } from '../model.ts'
import type { GroupQueueView, GroupView, SubscriptionView } from '../protocol/admin.ts'
import { PmqError } from '../protocol/errors.ts'
import { viewTarget } from './target-view.ts'

/** A group that has to exist. */
export async function requireGroup(core: Core, groupName: string): Promise<GroupSnapshot> {
  const snapshot = await readGroup(core, groupName)
  if (!snapshot) throw new PmqError('not_found', `there is no group ${groupName}`)
  return snapshot
}

/**
 * What a group's queue offsets are found in: itself, or the copies that the members of a broadcast group have of it.
 */
export async function readWorking(core: Core, snapshot: GroupSnapshot): Promise<GroupSnapshot[]> {
  if (hasOwnOffsets(snapshot.group)) return [snapshot]
  const copies = snapshot.copies.filter(copy => copy.consumerId !== undefined)
  const read = await Promise.all(copies.map(({ copyName }) => core.store.readGroup(copyName)))
  return read.filter(copy => copy !== undefined)
}

export async function getGroup(core: Core, groupName: string): Promise<GroupView> {
  const snapshot = await requireGroup(core, groupName)
  const { group, subscriptions, members, copies } = snapshot
  const offsets = (await readWorking(core, snapshot)).flatMap(working => working.offsets)
  // Each member of a broadcast group has a place in the same queues.
  const ends = new Map<number, Promise<number>>()
  for (const { topicName, queueId } of offsets) {
    if (!ends.has(queueId)) ends.set(queueId, core.findEnd(topicName, queueId))
  }
  const [consumers, queues, targets] = await Promise.all([
    core.store.readConsumers(members.map(member => member.consumerId)),
    Promise.all(offsets.map(async offset => viewQueue(core, snapshot, offset, (await ends.get(offset.queueId)) ?? 1))),
    core.store.readTargets({ groupName: snapshot.group.name }),
  ])
  const able = selectMembers(snapshot)
  const { name, mode, allowedIps, deniedIps, maxConsumers, origin, rbVersion, metaVersion, version } = group
  return {
    name,
    mode,
    allowedIps,
    deniedIps,
    maxConsumers,
    ...(origin && { origin }),
    copies: copies.flatMap(({ copyName, subEnv }) => (subEnv === undefined ? [] : { groupName: copyName, subEnv })),
    rbVersion,
    metaVersion,
    version,
    subscriptions: subscriptions.map(viewSubscription),
    unhandledTopics: unhandledTopics(snapshot),
    members: members.map(member => viewMember(member, able.includes(member), consumers)),
    queues,
    targets: targets
      .map(viewTarget)
      .map(({ name, kind, delivers, state }) => ({ name, kind, delivers, status: state.status })),
  }
}

function viewSubscription(subscription: Subscription): SubscriptionView {
  const [topicName = '', failTopic] = topicNamesOf(subscription)
  return { topicName, ...(failTopic && { failTopicName: failTopic }), ...settingsOf(subscription) }
}

function viewMember(member: Member, isAble: boolean, consumers: readonly Consumer[]): GroupView['members'][number] {
  const { consumerId, consumerName, ip, instanceId, topicNames } = member
  const heartbeatAtMs = consumers.find(consumer => consumer.consumerId === consumerId)?.heartbeatAtMs
  return {
    consumerId,
    consumerName,
    ip,
    ...(instanceId !== undefined && { instanceId }),
    topics: topicNames,
    ...(heartbeatAtMs !== undefined && { heartbeatAtMs }),
    isStandby: !isAble,
  }
}

/** Long for a person who looks at the queue; the alarm has more patience. */
const stalledAfterMs = 60_000

async function viewQueue(
  core: Core,
  { members, subscriptions }: GroupSnapshot,
  queue: QueueOffset,
  end: number,
): Promise<GroupQueueView> {
  const { topicName, originTopicName, queueId, queueOffsetId, offset, offsetVersion, isStopped } = queue
  const { consumerId, claim, committedAtMs } = queue
  const owner = members.find(member => member.consumerId === consumerId)
  const { store, clock } = core
  const deps = {
    clock,
    findUnread: (id: number, from: number) => findUnread(store, { queueId: id, offset: from, end }, clock.now()),
  }
  const { endsAtMs: _endsAtMs, lost, ...backlog } = await findBacklog(deps, queue, subscriptions, end, stalledAfterMs)
  return {
    topicName,
    ...(originTopicName !== undefined && { originTopicName }),
    queueId,
    queueOffsetId,
    offset,
    offsetVersion,
    ...(consumerId !== 0 && { consumerName: owner?.consumerName ?? `consumer ${consumerId}` }),
    ...(owner?.instanceId !== undefined && { instanceId: owner.instanceId }),
    ...(claim && { claimant: claim.claimant, claimedUntilMs: claim.untilMs }),
    isStopped,
    ...(committedAtMs !== undefined && { committedAtMs }),
    ...backlog,
    ...(lost > 0 && { lost }),
    ...viewDeaths(queue),
  }
}
