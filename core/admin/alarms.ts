import { type Alarm, alarmId, clearedKeptMs, describeAlarm, toTold } from '../alarms/alarm.ts'
import type { Core } from '../core.ts'
import type { AlarmListView, ListAlarmsRequest } from '../protocol/alarms.ts'

/** Alarms page by page, the one that changed last first. One that changes meanwhile is on the first page again. */
export async function listAlarms(core: Core, { state, after, limit }: ListAlarmsRequest): Promise<AlarmListView> {
  const nowMs = core.clock.now()
  const isListed = ({ clearedAtMs }: Alarm) =>
    clearedAtMs === undefined || (state === 'all' && nowMs < clearedAtMs + clearedKeptMs)
  const listed = (await core.store.listAlarms())
    .filter(isListed)
    .map(alarm => ({ alarm, place: placeOf(alarm) }))
    .filter(({ place }) => after === undefined || place < after)
    .sort((a, b) => (a.place < b.place ? 1 : -1))
  const page = listed.slice(0, limit)
  const last = page.at(-1)
  return {
    alarms: page.map(({ alarm }) => ({ ...toTold(alarm), text: describeAlarm(alarm) })),
    ...(last && listed.length > limit && { next: last.place }),
  }
}

/** In the order of the changes; of those at the same time, by name. */
const placeOf = (alarm: Alarm) => `${String(alarm.clearedAtMs ?? alarm.raisedAtMs).padStart(16, '0')}#${alarmId(alarm)}`
