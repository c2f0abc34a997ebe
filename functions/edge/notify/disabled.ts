import { alarmId } from '../../../core/alarms/alarm.ts'
import { raiseAlarm, readAlarms } from '../../../core/alarms/alarms.ts'
import type { Core } from '../../../core/core.ts'
import { alignNotifies } from '../../../core/notify/align.ts'
import type { Target } from '../../../core/notify/target.ts'

/** A target was disabled since it has failed: somebody is told, and its group is not announced any more if it was the last one. */
export async function tellDisabled(core: Core, { owner, name: targetName, state }: Target): Promise<void> {
  const ofGroup = owner === 'alarms' ? {} : { groupName: owner.groupName }
  const name = { kind: 'target_disabled', ...ofGroup, targetName } as const
  await raiseAlarm(core, name, { failures: state.failures + 1 }, (await readAlarms(core)).get(alarmId(name)))
  if (owner !== 'alarms') await alignNotifies(core, owner.groupName)
}
