import { type Alarm, clearedKeptMs } from '../../core/alarms/alarm.ts'
import type { AlarmStore } from '../../core/alarms/port.ts'
import { keys } from '../keys.ts'
import type { Database } from './database.ts'
import type { Records } from './records.ts'

export function createAlarms(database: Database, written: Records, durable: Records): AlarmStore {
  return {
    putAlarm: next =>
      database.write(() => {
        const key = keys.alarm(next)
        if ((written.get<Alarm>(key)?.revision ?? 0) !== next.revision - 1) return 'conflict'
        written.put(key, next, next.clearedAtMs === undefined ? undefined : next.clearedAtMs + clearedKeptMs)
        return 'put'
      }),

    listAlarms: () => database.read(() => durable.list<Alarm>(keys.alarmsPartition).map(({ doc }) => doc)),
  }
}
