import { groupArrival } from '../arrivals.ts'
import { type Core, groupHasChanged } from '../core.ts'
import { originOf } from '../group/fail-topics.ts'
import type { Group, GroupSnapshot } from '../model.ts'
import type { AssignedQueue, PolledGroup, PollRequest, PollResponse } from '../protocol/membership.ts'
import { toAssignedQueue } from './assigned-queue.ts'
import { meetVersion } from './fencing.ts'
import { findGroup } from './find.ts'
import { readSubEnvMap } from './sub-envs.ts'

/**
 * Tells a consumer of its groups that have changed: those whose version is above the one that it names, each with the
 * queues assigned to it. While nothing has changed the request is held, since PMQ's clients poll again at once; shortly
 * after a rebalance only briefly, since they start their queues after some unchanged answers.
 */
export async function getConsumerGroupPolling(core: Core, request: PollRequest): Promise<PollResponse> {
  const consumerId = request.consumerId ?? 0
  const known = Object.entries(request.consumerGroupVersion ?? {})
  const startedAt = core.clock.monotonic()
  let isKnown: boolean | undefined

  await releaseStopped(core, consumerId, known)
  for (;;) {
    const mark = core.arrivals.mark(known.map(([name]) => groupArrival(name)))
    const groups = (await Promise.all(known.map(([name]) => findGroup(core, name)))).filter(
      group => group !== undefined,
    )
    isKnown ??= (await core.store.readConsumers([consumerId])).length > 0
    const changed = isKnown
      ? groups.filter(group => group.version > (request.consumerGroupVersion?.[group.name] ?? 0))
      : []
    if (changed.length > 0) {
      const consumerGroups = await readAssignments(core, consumerId, changed)
      return { ...(await nothingNew(core, groups, false)), consumerGroups }
    }
    // Who is not known has nothing to start, and would only ask more often until its heartbeat tells it.
    const longestMs = isKnown ? holdFor(core, groups) : core.settings.pollHoldMs
    const holdMs = Math.min(request.waitMs ?? Number.POSITIVE_INFINITY, longestMs)
    const leftMs = holdMs - (core.clock.monotonic() - startedAt)
    if (leftMs <= 0) return nothingNew(core, groups, !isKnown)
    const woken = await core.arrivals.wait(mark, Math.min(leftMs, core.settings.groupCacheMs))
    if (woken === 'closed') return nothingNew(core, groups, !isKnown)
  }
}

/**
 * A client that presents a version has stopped all that this version takes from it; one that had nothing to commit says
 * it in no other way. So what is leaving this consumer is handed over, if it has been told of every move.
 */
async function releaseStopped(core: Core, consumerId: number, presented: [string, number][]): Promise<void> {
  for (const [groupName, version] of presented) {
    const group = await findGroup(core, groupName)
    if (!group || version < group.rebalancedVersion) continue
    const newest = Math.max(version, group.version)
    // What leaves from now on leaves by a higher version.
    if (newest === core.settledVersions.get(groupName)) continue
    const snapshot = await core.snapshots.get(groupName, newest)
    if (!snapshot || version < snapshot.group.rebalancedVersion) continue
    if (snapshot.offsets.every(offset => offset.nextConsumerId === undefined)) {
      core.settledVersions.set(groupName, snapshot.group.version)
    }
    for (const offset of snapshot.offsets) {
      if (offset.consumerId !== consumerId || offset.nextConsumerId === undefined) continue
      // A rebalance that goes on has taken it away, and has told nobody yet.
      if (offset.rbVersion > snapshot.group.rbVersion) continue
      const { queueOffsetId, offsetVersion } = offset
      const nowMs = core.clock.now()
      const commit = { groupName, queueOffsetId, offsetVersion, offset: 0, release: true, nowMs }
      const released = await core.store.commitOffset(commit)
      // It has come back to its owner meanwhile, who has to hear of its new offsetVersion.
      if ('handedOver' in released && !released.handedOver) await core.store.raiseMeta(groupName)
      groupHasChanged(core, groupName)
    }
  }
}

const briefHoldMs = 500
/** A PMQ client takes three unchanged answers after a rebalance before it starts. */
const settlingMs = 10_000

function holdFor(core: Core, groups: Group[]): number {
  return groups.some(group => isSettling(core, group, settlingMs))
    ? Math.min(briefHoldMs, core.settings.pollHoldMs)
    : core.settings.pollHoldMs
}

const isSettling = (core: Core, group: Group, forMs: number) =>
  group.rebalanceAsked > group.rebalanceDone || Math.abs(core.clock.now() - group.rebalancedAtMs) < forMs

const maxSleepMs = 2000

async function nothingNew(core: Core, groups: Group[], isDeleted: boolean): Promise<PollResponse> {
  const isChanging = groups.some(group => isSettling(core, group, core.settings.handoverTimeoutMs))
  return {
    suc: true,
    sleepTime: Math.floor(core.random() * maxSleepMs),
    consumerDeleted: isDeleted ? 1 : 0,
    brokerMetaMode: -1,
    ...(isChanging && { changing: true }),
    ...(core.settings.subEnvironments && { consumerGroupSubEnvMap: await readSubEnvMap(core, groups) }),
  }
}

async function readAssignments(core: Core, consumerId: number, changed: Group[]): Promise<Record<string, PolledGroup>> {
  const snapshots = await Promise.all(changed.map(group => core.snapshots.get(group.name, group.version)))
  const entries = snapshots
    .filter(snapshot => snapshot !== undefined)
    .map(snapshot => [snapshot.group.name, toPolledGroup(core, snapshot, consumerId)] as const)
  return Object.fromEntries(entries)
}

function toPolledGroup(core: Core, snapshot: GroupSnapshot, consumerId: number): PolledGroup {
  const { group, subscriptions, offsets } = snapshot
  const { name, rbVersion, metaVersion, version } = group
  const byTopic = new Map(subscriptions.map(subscription => [subscription.topicName, subscription]))
  const queues: Record<string, AssignedQueue> = {}
  for (const offset of offsets) {
    const subscription = byTopic.get(originOf(offset))
    const isOwn = offset.consumerId === consumerId && offset.nextConsumerId === undefined
    if (!subscription || !isOwn) continue
    meetVersion(core, offset)
    queues[offset.queueId] = toAssignedQueue(offset, subscription)
  }
  return { meta: { name, rbVersion, metaVersion, version }, queues }
}
