import { type Alarm, isOpen } from '../alarms/alarm.ts'
import { dropAlarm, retell, untold } from '../alarms/alarms.ts'
import { isOfTarget, judgeTargets } from '../alarms/judge-targets.ts'
import type { Core } from '../core.ts'
import type { TargetOwner } from '../notify/target.ts'
import type { Turns } from './turns.ts'

/** Names of groups, and what was read of their targets and alarms. */
export type Watched = {
  alarms: Map<string, Alarm>
  /** Groups that there were minutes ago, and those that are known to have been. */
  names: ReadonlySet<string>
  /** Groups whose targets are looked at now. */
  withTargets: readonly string[]
}

/**
 * What others have left undone of alarms, since they died or the bus or the store was away: changes that were not told, alarms of
 * groups that are gone, and those of targets. Where all is well it is one read, of the targets of alarms.
 */
export async function lookAfterAlarms(
  core: Core,
  { alarms, names, withTargets }: Watched,
  { each }: Turns,
): Promise<void> {
  await each(untold(core, alarms), 'alarm', id => retell(core, id, alarms))
  const open = [...alarms.values()].filter(isOpen)
  await each(groupsOf(open), 'alarms of group', async groupName => {
    if (await core.store.readGroupRecord(groupName)) return
    for (const alarm of open) if (alarm.groupName === groupName) await dropAlarm(core, alarm)
  })
  const looked = new Set([...withTargets, ...groupsOf(open.filter(isOfTarget))].filter(name => names.has(name)))
  const owners = new Map<string, TargetOwner>([['alarms', 'alarms']])
  for (const groupName of looked) owners.set(`group ${groupName}`, { groupName })
  await each([...owners.keys()], 'targets of', key => judgeTargets(core, owners.get(key) ?? 'alarms', alarms))
}

const groupsOf = (alarms: readonly Alarm[]) => [...new Set(alarms.flatMap(({ groupName }) => groupName ?? []))]
