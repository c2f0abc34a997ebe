import * as v from 'valibot'
import { wholeNumber } from './fields.ts'
import { limits } from './limits.ts'

export const listAlarmsRequest = v.strictObject({
  /** `open`: what is the matter now. `all`: also what was, within 30 days. Default `open`. */
  state: v.optional(v.picklist(['open', 'all']), 'open'),
  /** The `next` of the answer before. */
  after: v.optional(
    v.pipe(v.string(), v.maxLength(1000), v.regex(/^\d{16}#[\x21-\x7e]+$/, 'must be what an answer named as next')),
  ),
  /** How many at most. Default 100. */
  limit: v.optional(wholeNumber(1, limits.maxAlarmsPerPage), 100),
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
  /** It is over since what it was about is not there any more: a subscription, a group, a target. */
  isGone: v.optional(v.boolean()),
})
export const alarmListView = v.object({
  /** The one that changed last comes first. */
  alarms: v.array(alarmView),
  /** There are more: ask with this as `after`. */
  next: v.optional(v.string()),
})

export type ListAlarmsRequest = v.InferOutput<typeof listAlarmsRequest>
export type AlarmListView = v.InferOutput<typeof alarmListView>
