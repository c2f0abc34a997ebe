import { type AlarmName, alarmId } from '../core/alarms/alarm.ts'
import { monthOf, timeOf } from '../core/audit/records.ts'
import type { FirstPlace } from '../core/failed/records.ts'
import type { IdKind } from '../core/model.ts'
import type { Delivery, TargetOwner, TargetRef } from '../core/notify/target.ts'

/**
 * Where each record of the registry lives. Both stores use these keys; nothing else builds one.
 *
 * | record         | pk               | sk              | written by                  | read by                        |
 * |----------------|------------------|-----------------|-----------------------------|--------------------------------|
 * | topic          | TOPIC#name       | TOPIC           | admin                       | publish, consume, admin, tick  |
 * | removal        | TOPIC#name       | REMOVAL         | admin; stays a day          | admin                          |
 * | queue          | TOPIC#name       | QUEUE#id        | admin; tick: checkpoint     | with its topic                 |
 * | subscriber     | TOPIC#name       | GROUP#name      | admin; at a fail topic too  | with its topic                 |
 * | group          | GROUP#name       | GROUP           | admin, consume, tick        | consume, admin, tick           |
 * | subscription   | GROUP#name       | SUB#topic       | admin                       | with its group                 |
 * | queue offset   | GROUP#name       | OFFSET#id       | admin, tick; consume: commit| with its group                 |
 * | offset of queue| GROUP#name       | QUEUE#id        | with the queue offset       | to find the offset of a queue  |
 * | member         | GROUP#name       | MEMBER#consumer | consume, tick               | with its group                 |
 * | copy           | GROUP#origin     | COPY#name       | consume, tick               | with its origin                |
 * | consumer       | CONSUMER#id      | CONSUMER        | consume, tick               | consume, tick                  |
 * | consumer name  | CONSUMERNAME#name| CONSUMER        | consume, tick               | consume                        |
 * | newcomer       | NEWCOMERS        | id              | consume, tick               | tick                           |
 * | names by kind  | NAMES#kind       | name            | admin                       | admin                          |
 * | awake group    | AWAKE            | group name      | consume, admin, tick        | tick                           |
 * | counter        | COUNTER#kind     | COUNTER         | admin, consume              | the same                       |
 * | audit entry    | AUDIT#yyyy-mm    | time and chance | admin                       | admin                          |
 * | target         | TARGETS#owner    | name            | admin, notify               | the same, tick                 |
 * | group's target | TARGETGROUPS     | group#name      | admin                       | tick                           |
 * | delivery       | DELIVERIES#owner#name | time#id    | notify                      | admin                          |
 * | alarm          | ALARMS           | kind#group#topic#target | tick, notify, admin  | the same                       |
 * | removed queue  | REMOVEDQUEUES    | id              | admin, in SQLite            | its upkeep                     |
 * | failed message | FAILED#group#topic | time#queue#offset | publish; admin: resend, drop | admin                     |
 *
 * Numbers in sort keys are padded to 16 digits, so that they sort as numbers.
 */
export type Key = { pk: string; sk: string }

/** What the sort keys of a group's subscriptions begin with. */
export const subscriptionPrefix = 'SUB#'

const ownerKey = (owner: TargetOwner) => (owner === 'alarms' ? 'ALARMS' : `GROUP#${owner.groupName}`)

const digits = (id: number) => String(id).padStart(16, '0')

export const keys = {
  topicPartition: (topicName: string) => `TOPIC#${topicName}`,
  topic: (topicName: string): Key => ({ pk: `TOPIC#${topicName}`, sk: 'TOPIC' }),
  topicRemoval: (topicName: string): Key => ({ pk: `TOPIC#${topicName}`, sk: 'REMOVAL' }),
  queue: (topicName: string, queueId: number): Key => ({ pk: `TOPIC#${topicName}`, sk: `QUEUE#${digits(queueId)}` }),
  subscriber: (topicName: string, groupName: string): Key => ({ pk: `TOPIC#${topicName}`, sk: `GROUP#${groupName}` }),

  groupPartition: (groupName: string) => `GROUP#${groupName}`,
  group: (groupName: string): Key => ({ pk: `GROUP#${groupName}`, sk: 'GROUP' }),
  subscription: (groupName: string, topicName: string): Key => ({ pk: `GROUP#${groupName}`, sk: `SUB#${topicName}` }),
  queueOffset: (groupName: string, queueOffsetId: number): Key => ({
    pk: `GROUP#${groupName}`,
    sk: `OFFSET#${digits(queueOffsetId)}`,
  }),
  offsetOfQueue: (groupName: string, queueId: number): Key => ({
    pk: `GROUP#${groupName}`,
    sk: `QUEUE#${digits(queueId)}`,
  }),
  member: (groupName: string, consumerId: number): Key => ({
    pk: `GROUP#${groupName}`,
    sk: `MEMBER#${digits(consumerId)}`,
  }),

  copy: (originName: string, copyName: string): Key => ({ pk: `GROUP#${originName}`, sk: `COPY#${copyName}` }),

  newcomersPartition: 'NEWCOMERS',
  newcomer: (consumerId: number): Key => ({ pk: 'NEWCOMERS', sk: digits(consumerId) }),
  consumer: (consumerId: number): Key => ({ pk: `CONSUMER#${digits(consumerId)}`, sk: 'CONSUMER' }),
  consumerName: (consumerName: string): Key => ({ pk: `CONSUMERNAME#${consumerName}`, sk: 'CONSUMER' }),

  namesPartition: (kind: 'topic' | 'group') => `NAMES#${kind}`,
  name: (kind: 'topic' | 'group', name: string): Key => ({ pk: `NAMES#${kind}`, sk: name }),

  awakePartition: 'AWAKE',
  awake: (groupName: string): Key => ({ pk: 'AWAKE', sk: groupName }),

  auditPartition: (month: string) => `AUDIT#${month}`,
  auditEntry: (entryId: string): Key => ({ pk: `AUDIT#${monthOf(timeOf(entryId))}`, sk: entryId }),

  targetsPartition: (owner: TargetOwner) => `TARGETS#${ownerKey(owner)}`,
  target: ({ owner, name }: TargetRef): Key => ({ pk: `TARGETS#${ownerKey(owner)}`, sk: name }),
  targetGroupsPartition: 'TARGETGROUPS',
  targetOfGroup: (groupName: string, name: string): Key => ({ pk: 'TARGETGROUPS', sk: `${groupName}#${name}` }),
  deliveriesPartition: ({ owner, name }: TargetRef) => `DELIVERIES#${ownerKey(owner)}#${name}`,
  delivery: (ref: TargetRef, { atMs, deliveryId }: Pick<Delivery, 'atMs' | 'deliveryId'>): Key => ({
    pk: `DELIVERIES#${ownerKey(ref.owner)}#${ref.name}`,
    sk: `${digits(atMs)}#${deliveryId}`,
  }),
  /** What the sort keys of deliveries before a time are below. */
  deliveriesBefore: (atMs: number) => digits(atMs),

  alarmsPartition: 'ALARMS',
  alarm: (name: AlarmName): Key => ({ pk: 'ALARMS', sk: alarmId(name) }),

  removedQueuesPartition: 'REMOVEDQUEUES',
  removedQueue: (queueId: number): Key => ({ pk: 'REMOVEDQUEUES', sk: digits(queueId) }),

  failedPartition: (groupName: string, topicName: string) => `FAILED#${groupName}#${topicName}`,
  failed: (groupName: string, topicName: string, { atMs, queueId, offset }: FirstPlace): Key => ({
    pk: `FAILED#${groupName}#${topicName}`,
    sk: `${digits(atMs)}#${digits(queueId)}#${digits(offset)}`,
  }),

  counter: (kind: IdKind): Key => ({ pk: `COUNTER#${kind}`, sk: 'COUNTER' }),
}
