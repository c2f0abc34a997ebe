import type { Alarm } from './alarm.ts'

/** The part of the store port for alarms. */
export interface AlarmStore {
  /**
   * Puts an alarm whose `revision` is the next one, if the one of its name is still of the revision before (0: there is none).
   * One that was cleared is kept for `clearedKeptMs`, or longer.
   */
  putAlarm(next: Alarm): Promise<'put' | 'conflict'>
  /** All alarms that are open, and those that were cleared lately; in one consistent read, by their names. */
  listAlarms(): Promise<Alarm[]>
}
