import type { Core } from '../core.ts'
import type { Target, TargetOwner } from '../notify/target.ts'
import { type Alarm, alarmId, isOpen, targetAlarm } from './alarm.ts'
import { clearAlarm, dropAlarm, raiseAlarm } from './alarms.ts'

/** Raises the alarm that a target was disabled since it failed. */
export function raiseDisabled(core: Core, target: Target, alarms: ReadonlyMap<string, Alarm>): Promise<void> {
  const name = targetAlarm(target)
  // The failure by which it was disabled comes on top of those that it had by then.
  return raiseAlarm(core, name, { failures: target.state.failures + 1 }, alarms.get(alarmId(name)))
}

/**
 * Raises and clears what is to be said of an owner's targets: whoever disables or enables one says so himself, unless he dies before
 * he could. One read.
 */
export async function judgeTargets(core: Core, owner: TargetOwner, alarms: ReadonlyMap<string, Alarm>): Promise<void> {
  const targets = await core.store.readTargets(owner)
  for (const target of targets.filter(hasGivenUp)) await raiseDisabled(core, target, alarms)
  const groupName = owner === 'alarms' ? undefined : owner.groupName
  for (const alarm of alarms.values()) {
    if (!isOfTarget(alarm) || !isOpen(alarm) || alarm.groupName !== groupName) continue
    const target = targets.find(({ name }) => name === alarm.targetName)
    if (!target) await dropAlarm(core, alarm)
    else if (!hasGivenUp(target)) await clearAlarm(core, alarm)
  }
}

export const isOfTarget = ({ kind }: Pick<Alarm, 'kind'>) => kind === 'target_disabled'

const hasGivenUp = ({ state: { isDisabled, disabledBy } }: Target) => isDisabled && disabledBy === 'failures'
