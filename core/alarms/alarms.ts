import type { Core } from '../core.ts'
import { type Alarm, type AlarmName, alarmId, describeAlarm, isOpen, toTold } from './alarm.ts'

type Parts = Pick<Core, 'store' | 'clock' | 'bus'>

/**
 * Alarms are told once when they are raised and once when they are cleared, by the one who has done that: the store lets one do it.
 * He notes then that it was told; where he died before, `retell` says it again. So each change is told at least once, and only
 * after a death twice.
 */

/** All alarms by their ids. */
export async function readAlarms({ store }: Pick<Core, 'store'>): Promise<Map<string, Alarm>> {
  return new Map((await store.listAlarms()).map(alarm => [alarmId(alarm), alarm]))
}

/** Raises an alarm unless it is open. `known`: what there was of it, if anything. */
export async function raiseAlarm(
  core: Parts,
  name: AlarmName,
  facts: Alarm['facts'],
  known: Alarm | undefined,
): Promise<void> {
  if (known && isOpen(known)) return
  const raisedAtMs = core.clock.now()
  await change(core, { ...name, facts, raisedAtMs, isTold: false, revision: (known?.revision ?? 0) + 1 })
}

/** Clears an alarm that is open. */
export async function clearAlarm(core: Parts, known: Alarm | undefined, facts: Alarm['facts'] = {}): Promise<void> {
  if (!known || !isOpen(known)) return
  const { revision } = known
  await change(core, { ...known, facts, clearedAtMs: core.clock.now(), isTold: false, revision: revision + 1 })
}

/** Tells again what its author may have died before telling. */
export async function retell(core: Parts, alarms: Iterable<Alarm>): Promise<void> {
  for (const alarm of alarms) {
    const changedAtMs = alarm.clearedAtMs ?? alarm.raisedAtMs
    if (!alarm.isTold && core.clock.now() - changedAtMs >= patienceMs) await tell(core, alarm)
  }
}

/** So long whoever changes an alarm may take to tell of it. */
const patienceMs = 60_000

async function change(core: Parts, next: Alarm): Promise<void> {
  // Somebody else has, and tells of it.
  if ((await core.store.putAlarm(next)) === 'conflict') return
  await tell(core, next)
}

async function tell(core: Parts, alarm: Alarm): Promise<void> {
  await core.bus.tell({
    type: isOpen(alarm) ? 'AlarmRaised' : 'AlarmCleared',
    alarm: toTold(alarm),
    text: describeAlarm(alarm),
  })
  await core.store.putAlarm({ ...alarm, isTold: true, revision: alarm.revision + 1 })
}
