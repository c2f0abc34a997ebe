import type { Core } from '../core.ts'
import { type Alarm, type AlarmName, alarmId, describeAlarm, isOpen, toTold } from './alarm.ts'

type Parts = Pick<Core, 'store' | 'clock' | 'bus'>

/**
 * Alarms are told once when they are raised and once when they are cleared, by the one who has done that: the store lets one do it.
 * He notes then that it was told; where he died before, or the bus was away, `retell` says it again. No alarm changes before its last
 * change was told: who would change it comes again, with the next tick. So changes are told in order, each at least once, and twice
 * only where it could not be noted that one was told.
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
  await change(core, known, { ...name, facts, raisedAtMs: core.clock.now() })
}

/** Clears an alarm that is open. */
export async function clearAlarm(core: Parts, known: Alarm | undefined, facts: Alarm['facts'] = {}): Promise<void> {
  if (known && isOpen(known)) await change(core, known, { ...known, facts, clearedAtMs: core.clock.now() })
}

/** Clears an alarm about what is not there any more. */
export async function dropAlarm(core: Parts, known: Alarm | undefined): Promise<void> {
  const clearedAtMs = core.clock.now()
  if (known && isOpen(known)) await change(core, known, { ...known, facts: {}, clearedAtMs, isGone: true })
}

/** So long whoever changes an alarm may take to tell of it. */
const patienceMs = 60_000

/** Ids of the alarms whose last change its author has not told by now. */
export const untold = ({ clock }: Pick<Core, 'clock'>, alarms: ReadonlyMap<string, Alarm>): string[] =>
  Array.from(alarms, ([id, { isTold, raisedAtMs, clearedAtMs = raisedAtMs }]) =>
    !isTold && clock.now() - clearedAtMs >= patienceMs ? [id] : [],
  ).flat()

/** Tells of the last change of an alarm again, and replaces it among the alarms by what is there then. */
export async function retell(core: Parts, id: string, alarms: Map<string, Alarm>): Promise<void> {
  const alarm = alarms.get(id)
  if (alarm) alarms.set(id, await tell(core, alarm))
}

async function change(core: Parts, known: Alarm | undefined, changed: Omit<Alarm, 'isTold' | 'revision'>) {
  if (known && !known.isTold) return
  const next = { ...changed, isTold: false, revision: (known?.revision ?? 0) + 1 }
  // Else somebody else has, and tells of it.
  if ((await core.store.putAlarm(next)) === 'put') await tell(core, next)
}

/** Answers with the alarm as it is then. */
async function tell(core: Parts, alarm: Alarm): Promise<Alarm> {
  const type = isOpen(alarm) ? 'AlarmRaised' : 'AlarmCleared'
  if ((await core.bus.tell({ type, alarm: toTold(alarm), text: describeAlarm(alarm) })) === 'lost') return alarm
  const told = { ...alarm, isTold: true, revision: alarm.revision + 1 }
  return (await core.store.putAlarm(told)) === 'put' ? told : alarm
}
