import { alarmId, targetAlarm } from '../alarms/alarm.ts'
import { clearAlarm, dropAlarm, readAlarms } from '../alarms/alarms.ts'
import { isName } from '../client/find.ts'
import type { Core } from '../core.ts'
import { kindOf } from '../group/copy-names.ts'
import type { Group } from '../model.ts'
import { alignNotifies } from '../notify/align.ts'
import { readTarget, replaceTarget } from '../notify/change-target.ts'
import { disabled } from '../notify/steps.ts'
import { freshState, type Target, type TargetOwner, type TargetRef, type TargetSecret } from '../notify/target.ts'
import { refuseForMode, targetSettings } from '../notify/target-settings.ts'
import { tellWaiting } from '../notify/tell-waiting.ts'
import { PmqError } from '../protocol/errors.ts'
import { limits } from '../protocol/limits.ts'
import {
  type AddSecretRequest,
  type DeliveryListView,
  isTargetName,
  type ListDeliveriesRequest,
  type MadeTargetView,
  type PutTargetRequest,
  type SecretView,
  type TargetView,
} from '../protocol/targets.ts'
import { requireGroup } from './group-view.ts'
import { viewTarget } from './target-view.ts'

/** Whose targets a path is about: a group's, which has to exist, or alarms'. */
export type OwnerName = string | undefined

async function openOwner(core: Core, groupName: OwnerName): Promise<{ owner: TargetOwner; group?: Group }> {
  if (groupName === undefined) return { owner: 'alarms' }
  const { group } = await requireGroup(core, groupName)
  return { owner: { groupName }, group }
}

export async function listTargets(core: Core, groupName: OwnerName): Promise<{ targets: TargetView[] }> {
  const { owner } = await openOwner(core, groupName)
  return { targets: (await core.store.readTargets(owner)).map(viewTarget) }
}

export async function getTarget(core: Core, groupName: OwnerName, name: string): Promise<TargetView> {
  const { owner } = await openOwner(core, groupName)
  return viewTarget(await requireTarget(core, { owner, name }))
}

/** Makes a target, or changes its settings; its secrets stay. One that is sent elsewhere from now on has not failed yet. */
export async function putTarget(
  core: Core,
  groupName: OwnerName,
  name: string,
  request: PutTargetRequest,
): Promise<MadeTargetView> {
  const { owner, group } = await openOwner(core, groupName)
  if (!isTargetName(name)) throw new PmqError('bad_request', `the name of a target must be ${limits.nameRule}`)
  if (group && kindOf(group) === 'consumer_copy')
    throw new PmqError('conflict', `group ${group.name} is what one consumer has of a group: give that one targets`)
  const there = await core.store.readTargets(owner)
  const current = there.find(target => target.name === name)
  const { secret, ...settings } = request
  const next = targetSettings(settings, current, core.settings.targets)
  if (group) refuseForMode(next, group.mode)
  if (current) {
    if (secret !== undefined)
      throw new PmqError('conflict', `target ${name} has its secrets: add one by POST …/targets/${name}/secrets`)
    return viewTarget(
      await change(core, current, target => changed(target, targetSettings(settings, target, core.settings.targets))),
    )
  }
  if (there.length >= limits.maxTargets)
    throw new PmqError(
      'conflict',
      `there are ${there.length} targets already; at most ${limits.maxTargets} are accepted`,
    )
  const createdAtMs = core.clock.now()
  const secrets = next.kind === 'webhook' ? [newSecret(core, secret)] : []
  const made: Target = { owner, name, ...next, secrets, createdAtMs, revision: 1, state: freshState }
  if ((await core.store.createTarget(made)) === 'exists')
    throw new PmqError('conflict', `somebody else has made target ${name} meanwhile`)
  if (group) await tellNew(core, group.name)
  const [first] = secret === undefined ? secrets : []
  return { ...viewTarget(made), ...(first && { secret: first.value }) }
}

function changed(target: Target, settings: Partial<Target>): Target {
  const next = { ...target, ...settings }
  const isElsewhere = next.url !== target.url || next.functionName !== target.functionName
  return isElsewhere && !target.state.isDisabled ? { ...next, state: healthy(target) } : next
}

/** As if it had never failed; what is pending, and the job for it, stay. */
function healthy({ state }: Target): Target['state'] {
  const { failingSinceMs: _since, openUntilMs: _open, ...rest } = state
  return { ...rest, failures: 0 }
}

async function tellNew(core: Core, groupName: string): Promise<void> {
  await alignNotifies(core, groupName)
  await tellWaiting(core, groupName)
}

export async function removeTarget(core: Core, groupName: OwnerName, name: string): Promise<{ removed: string }> {
  const { owner } = await openOwner(core, groupName)
  const target = isTargetName(name) ? await readTarget(core, { owner, name }) : undefined
  const outcome = target ? await core.store.removeTarget(target) : 'unknown_target'
  if (target) await noLongerDisabled(core, target, dropAlarm)
  // An earlier call may have come no further than to here.
  if (groupName !== undefined) await alignNotifies(core, groupName)
  if (outcome === 'unknown_target') throw unknownTarget({ owner, name })
  return { removed: name }
}

/** A target is sent to again at once, whatever it was like before; and told of what waits. */
export async function enableTarget(core: Core, groupName: OwnerName, name: string): Promise<TargetView> {
  const { owner } = await openOwner(core, groupName)
  const read = await requireTarget(core, { owner, name })
  const { state } = read
  if (!state.isDisabled && state.failures === 0) return viewTarget(read)
  const target = await change(core, read, each => ({ ...each, state: freshState }))
  await noLongerDisabled(core, read, clearAlarm)
  if (groupName !== undefined) await tellNew(core, groupName)
  return viewTarget(target)
}

/** The alarm that it was disabled is over. Only who was disabled by failures has one. */
async function noLongerDisabled(
  core: Core,
  target: Target,
  clear: typeof dropAlarm | typeof clearAlarm,
): Promise<void> {
  if (target.state.disabledBy !== 'failures') return
  await clear(core, (await readAlarms(core)).get(alarmId(targetAlarm(target))))
}

export async function disableTarget(core: Core, groupName: OwnerName, name: string): Promise<TargetView> {
  const { owner } = await openOwner(core, groupName)
  const read = await requireTarget(core, { owner, name })
  if (read.state.isDisabled) return viewTarget(read)
  const nowMs = core.clock.now()
  const target = await change(core, read, each => ({ ...each, state: disabled(each.state, 'operator', nowMs) }))
  if (groupName !== undefined) await alignNotifies(core, groupName)
  return viewTarget(target)
}

export async function addTargetSecret(
  core: Core,
  groupName: OwnerName,
  name: string,
  { secret }: AddSecretRequest,
): Promise<SecretView> {
  const { owner } = await openOwner(core, groupName)
  const read = await requireTarget(core, { owner, name })
  if (read.kind !== 'webhook')
    throw new PmqError('conflict', `target ${name} is of kind ${read.kind}: only webhooks are signed`)
  const added = newSecret(core, secret)
  const target = await change(core, read, each => {
    if (each.secrets.length >= limits.maxSecrets)
      throw new PmqError(
        'conflict',
        `target ${name} has ${each.secrets.length} secrets; at most ${limits.maxSecrets} are accepted: remove one`,
      )
    return { ...each, secrets: [...each.secrets, added] }
  })
  return { secretId: added.secretId, ...(secret === undefined && { secret: added.value }), target: viewTarget(target) }
}

export async function removeTargetSecret(
  core: Core,
  groupName: OwnerName,
  name: string,
  secretId: string,
): Promise<TargetView> {
  const { owner } = await openOwner(core, groupName)
  const read = await requireTarget(core, { owner, name })
  const target = await change(core, read, each => {
    const secrets = each.secrets.filter(secret => secret.secretId !== secretId)
    if (secrets.length === each.secrets.length)
      throw new PmqError('not_found', `target ${name} has no secret of this id`)
    if (secrets.length === 0)
      throw new PmqError('conflict', `it is the last secret of target ${name}: add another one first`)
    return { ...each, secrets }
  })
  return viewTarget(target)
}

export async function testTarget(core: Core, groupName: OwnerName, name: string): Promise<{ deliveryId: string }> {
  const { owner } = await openOwner(core, groupName)
  await requireTarget(core, { owner, name })
  const deliveryId = `test_${core.newId()}`
  await core.bus.tell({ type: 'TargetTest', target: { owner, name }, deliveryId })
  return { deliveryId }
}

export async function listTargetDeliveries(
  core: Core,
  groupName: OwnerName,
  name: string,
  { beforeMs, limit }: ListDeliveriesRequest,
): Promise<DeliveryListView> {
  const { owner } = await openOwner(core, groupName)
  await requireTarget(core, { owner, name })
  const page = { ...(beforeMs !== undefined && { beforeMs }), limit }
  const deliveries = await core.store.listDeliveries({ owner, name }, page)
  const oldest = deliveries.length === limit ? deliveries.at(-1) : undefined
  return { deliveries, ...(oldest && { next: oldest.atMs }) }
}

async function change(core: Core, read: Target, by: (target: Target) => Target): Promise<Target> {
  const target = await replaceTarget(core, read, by)
  if (!target) throw unknownTarget(read)
  return target
}

async function requireTarget(core: Core, ref: TargetRef): Promise<Target> {
  const target = isName(ref.name) ? await readTarget(core, ref) : undefined
  if (!target) throw unknownTarget(ref)
  return target
}

const unknownTarget = ({ owner, name }: TargetRef) =>
  new PmqError(
    'not_found',
    owner === 'alarms' ? `alarms have no target ${name}` : `group ${owner.groupName} has no target ${name}`,
  )

const newSecret = (core: Core, given: string | undefined): TargetSecret => ({
  secretId: core.newId(),
  value: given ?? core.newSecret(),
  createdAtMs: core.clock.now(),
})
