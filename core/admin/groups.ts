import { type Core, groupHasChanged } from '../core.ts'
import { newGroup, removeGroup } from '../group/copies.ts'
import { parseIpRange } from '../group/members.ts'
import type { Group, GroupMode, GroupSettings, GroupSnapshot } from '../model.ts'
import type { CreateGroupRequest, GroupListView, GroupView, UpdateGroupRequest } from '../protocol/admin.ts'
import { PmqError } from '../protocol/errors.ts'
import { getGroup, requireGroup } from './group-view.ts'
import { listAll } from './list.ts'

export async function createGroup(core: Core, request: CreateGroupRequest): Promise<GroupView> {
  const { name, mode, ...settings } = request
  const made = newGroup(name, core.clock.now())
  const outcome = await core.store.createGroup({ ...made, mode, ...withSettings(settings, { ...made, mode }) })
  if (outcome === 'exists') throw new PmqError('already_exists', `group ${name} exists already`)
  return getGroup(core, name)
}

export async function listGroups(core: Core): Promise<GroupListView> {
  return { groups: await listAll(page => core.store.listGroups(page)) }
}

/** Changes which members may be given queues. The group is rebalanced at once. */
export async function updateGroup(core: Core, groupName: string, request: UpdateGroupRequest): Promise<GroupView> {
  const { group } = await requireGroup(core, groupName)
  refuseConsumersCopy(group)
  const { mode, ...settings } = request
  if (mode !== undefined && mode !== group.mode) {
    throw new PmqError('conflict', `group ${groupName} is ${group.mode} for ever: make another one that is ${mode}`)
  }
  await core.store.updateGroup(groupName, withSettings(settings, group))
  await core.bus.groupChanged(groupName)
  groupHasChanged(core, groupName)
  return getGroup(core, groupName)
}

function withSettings(request: UpdateGroupRequest, current: GroupSettings & { mode: GroupMode }): GroupSettings {
  const {
    allowedIps = current.allowedIps,
    deniedIps = current.deniedIps,
    maxConsumers = current.maxConsumers,
  } = request
  const wrong = [...allowedIps, ...deniedIps].find(entry => parseIpRange(entry) === undefined)
  if (wrong !== undefined) {
    const accepted = 'an IP address, or a range such as 10.1.0.0/16'
    throw new PmqError('bad_request', `"${wrong}" is no IP address; accepted is ${accepted}`)
  }
  if (current.mode === 'claimed' && (allowedIps.length > 0 || deniedIps.length > 0 || maxConsumers > 0)) {
    const reason = 'who claims its queues is no member of it, and nobody whom these could keep out'
    throw new PmqError('bad_request', `a claimed group takes no allowedIps, deniedIps and maxConsumers: ${reason}`)
  }
  return { allowedIps, deniedIps, maxConsumers }
}

/** Removes a group, its copies, and how far they were. Refused while anybody consumes with it. Repeating it finishes. */
export async function deleteGroup(core: Core, groupName: string): Promise<{ removed: string }> {
  const snapshot = await requireGroup(core, groupName)
  refuseConsumersCopy(snapshot.group)
  for (const each of await withCopies(core, snapshot)) refuseIfBusy(core, each)
  if ((await removeGroup(core, groupName)) === 'removed') return { removed: groupName }
  throw new PmqError('conflict', `somebody has joined group ${groupName} meanwhile: stop its consumers, and try again`)
}

/** A group with its copies, and theirs. */
async function withCopies(core: Core, snapshot: GroupSnapshot): Promise<GroupSnapshot[]> {
  const copies = await Promise.all(snapshot.copies.map(({ copyName }) => core.store.readGroup(copyName)))
  const nested = await Promise.all(copies.filter(copy => copy !== undefined).map(copy => withCopies(core, copy)))
  return [snapshot, ...nested.flat()]
}

/** It comes and goes with its consumer, and is as the group is that it is a copy of. */
function refuseConsumersCopy({ name, origin }: Group): void {
  if (origin === undefined || !('consumerId' in origin)) return
  const { consumerId, groupName } = origin
  throw new PmqError(
    'conflict',
    `group ${name} is what consumer ${consumerId} has of group ${groupName}: change that one`,
  )
}

function refuseIfBusy(core: Core, { group, members, offsets }: GroupSnapshot): void {
  if (members.length > 0) {
    const names = members.slice(0, 3).map(member => member.consumerName)
    throw new PmqError(
      'conflict',
      `group ${group.name} has ${members.length} members (${names.join(', ')}): stop these consumers first`,
    )
  }
  const nowMs = core.clock.now()
  const held = offsets.find(({ claim }) => claim !== undefined && claim.untilMs > nowMs)
  if (held) {
    const { claimant, untilMs = 0 } = held.claim ?? {}
    const until = new Date(untilMs).toISOString()
    throw new PmqError(
      'conflict',
      `queue ${held.queueId} of group ${group.name} is claimed by ${claimant} until ${until}`,
    )
  }
}
