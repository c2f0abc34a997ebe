import { readAlarms } from '../../../core/alarms/alarms.ts'
import { raiseDisabled } from '../../../core/alarms/judge-targets.ts'
import type { Core } from '../../../core/core.ts'
import { alignNotifies } from '../../../core/notify/align.ts'
import type { Target } from '../../../core/notify/target.ts'

/** A target was disabled since it has failed: somebody is told, and its group is not announced any more if it was the last one. */
export async function tellDisabled(core: Core, target: Target): Promise<void> {
  await raiseDisabled(core, target, await readAlarms(core))
  if (target.owner !== 'alarms') await alignNotifies(core, target.owner.groupName)
}
