import type { Core } from '../core.ts'
import { consumerCopyName } from '../group/copy-names.ts'
import { expireMembers } from '../group/expire.ts'
import { isRebalanceOwed } from '../group/rebalance.ts'
import type { Consumer } from '../model.ts'
import type { HeartbeatRequest, HeartbeatResponse } from '../protocol/membership.ts'
import { findGroup } from './find.ts'
import { groupVersions } from './group-versions.ts'

/** A consumer is given up when this many of its heartbeats are missing. */
const heartbeatsPerSession = 3
/** How often one container looks for dead members of a group that it hears of, as a part of the session time-out. */
const expiryChecksPerSession = 6

/** Says that consumers live; tells them whether they are known and what version their groups have. */
export async function heartbeat(core: Core, request: HeartbeatRequest): Promise<HeartbeatResponse> {
  const ids = [...new Set([request.consumerId, ...(request.consumerIds ?? [])].filter(id => id != null && id > 0))]
  const nowMs = core.clock.now()
  try {
    const consumers = await Promise.all(ids.map(id => core.store.heartbeat(id as number, nowMs)))
    const groupNames = new Set(consumers.flatMap(consumer => consumer?.groupNames ?? []))
    for (const groupName of groupNames) await checkInPassing(core, groupName, nowMs)
    return await answer(core, consumers)
  } catch (error) {
    // Others were not heard either.
    core.silences.forgetAll()
    throw error
  }
}

async function answer(core: Core, consumers: (Consumer | undefined)[]): Promise<HeartbeatResponse> {
  const names = consumers.flatMap(consumer => consumer?.groupNames.map(name => nameFor(core, name, consumer)) ?? [])
  const versions = await groupVersions(core, new Set(await Promise.all(names)))
  const heatbeatTime = Math.max(1, Math.floor(core.settings.sessionTimeoutMs / heartbeatsPerSession / 1000))
  const isDeleted = consumers.some(consumer => consumer === undefined)
  return { suc: true, heatbeatTime, deleted: isDeleted ? 1 : 0, bakUrl: '', versions }
}

/** What a group is called for one of its consumers. */
async function nameFor(core: Core, groupName: string, { consumerId }: Consumer): Promise<string> {
  const group = await findGroup(core, groupName)
  return group?.mode === 'broadcast' ? consumerCopyName(groupName, consumerId) : groupName
}

/**
 * An active group notices by the heartbeats of the living that a member is dead, an owner is late, or an event was lost;
 * the tick is there for the others.
 */
async function checkInPassing(core: Core, groupName: string, nowMs: number): Promise<void> {
  const lastMs = core.expiryCheckedAtMs.get(groupName)
  const everyMs = core.settings.sessionTimeoutMs / expiryChecksPerSession
  if (lastMs !== undefined && nowMs >= lastMs && nowMs - lastMs < everyMs) return
  core.expiryCheckedAtMs.set(groupName, nowMs)
  const snapshot = await core.store.readGroup(groupName)
  if (!snapshot) return
  await expireMembers(core, snapshot)
  // Of a broadcast group nothing is urgent: what joining asks for was done by who joined.
  if (snapshot.group.mode !== 'broadcast' && isRebalanceOwed(core, snapshot)) await core.bus.groupChanged(groupName)
}
