import { type Alarm, describeAlarm, isOpen, toTold } from '../alarms/alarm.ts'
import type { Core } from '../core.ts'
import type { AlarmListView, ListAlarmsRequest } from '../protocol/alarms.ts'

export async function listAlarms(core: Core, { state }: ListAlarmsRequest): Promise<AlarmListView> {
  const alarms = (await core.store.listAlarms()).filter(alarm => state === 'all' || isOpen(alarm))
  const changedAt = ({ raisedAtMs, clearedAtMs }: Alarm) => clearedAtMs ?? raisedAtMs
  const inOrder = alarms.toSorted((a, b) => changedAt(b) - changedAt(a))
  return { alarms: inOrder.map(alarm => ({ ...toTold(alarm), text: describeAlarm(alarm) })) }
}
