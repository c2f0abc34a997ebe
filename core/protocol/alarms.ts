import * as v from 'valibot'
import { wholeNumber } from './fields.ts'

export const listAlarmsRequest = v.strictObject({
  /** `open`: what is the matter now. `all`: also what was, within 30 days. Default `open`. */
  state: v.optional(v.picklist(['open', 'all']), 'open'),
})

export const alarmView = v.object({
  kind: v.picklist(['lag', 'retention', 'stalled', 'target_disabled']),
  groupName: v.optional(v.string()),
  /** A fail topic, where it is about messages that wait to be handled again. */
  topicName: v.optional(v.string()),
  targetName: v.optional(v.string()),
  /** What is the matter, for people. */
  text: v.string(),
  /** Figures of when it was raised, or cleared; their names say their units. */
  facts: v.record(v.string(), v.number()),
  raisedAtMs: wholeNumber(),
  /** Absent: it is open. */
  clearedAtMs: v.optional(wholeNumber()),
})
/** The one that changed last comes first. */
export const alarmListView = v.object({ alarms: v.array(alarmView) })

export type ListAlarmsRequest = v.InferOutput<typeof listAlarmsRequest>
export type AlarmListView = v.InferOutput<typeof alarmListView>
