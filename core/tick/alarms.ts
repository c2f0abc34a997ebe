import { type Alarm, isOpen } from '../alarms/alarm.ts'
import { dropAlarm, retell, untold } from '../alarms/alarms.ts'
import { isOfTarget, judgeTargets } from '../alarms/judge-targets.ts'
import type { Core } from '../core.ts'
import type { TargetOwner } from '../notify/target.ts'

/** Does something about each of several things, as far as time goes: what fails of it keeps no other from its turn. */
export type Each = (names: readonly string[], what: string, act: (name: string) => Promise<void>) => Promise<void>

/** Names of groups, and what was read of their targets and alarms. */
export type Watched = {
  alarms: Map<string, Alarm>
  /** All groups. */
  names: readonly string[]
  /** Groups whose targets are looked at now. */
  withTargets: readonly string[]
}

/**
 * What others have left undone of alarms, since they died or the bus or the store was away: changes that were not told, alarms of
 * groups that are gone, and those of targets. Where all is well it is one read, of the targets of alarms.
 */
export async function lookAfterAlarms(core: Core, { alarms, names, withTargets }: Watched, each: Each): Promise<void> {
  await each(untold(core, alarms), 'alarm', id => retell(core, id, alarms))
  const open = [...alarms.values()].filter(isOpen)
  const there = new Set(names)
  await each(
    groupsOf(open).filter(groupName => !there.has(groupName)),
    'alarms of group',
    async groupName => {
      for (const alarm of open) if (alarm.groupName === groupName) await dropAlarm(core, alarm)
    },
  )
  const looked = new Set([...withTargets, ...groupsOf(open.filter(isOfTarget))].filter(name => there.has(name)))
  const owners = new Map<string, TargetOwner>([['alarms', 'alarms']])
  for (const groupName of looked) owners.set(`group ${groupName}`, { groupName })
  await each([...owners.keys()], 'targets of', key => judgeTargets(core, owners.get(key) ?? 'alarms', alarms))
}

const groupsOf = (alarms: readonly Alarm[]) => [...new Set(alarms.flatMap(({ groupName }) => groupName ?? []))]
