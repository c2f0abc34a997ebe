import type { FailedMessage, FailedName, FailedState } from '../../core/failed/records.ts'
import { keys } from '../keys.ts'
import { type Item, num, numOf, str, strOf, ttl } from './attributes.ts'
import { itemKey } from './items.ts'

/** Failed messages as items and back. `x` is DynamoDB's own; readers go by `endsAtMs`. */
export const failedKey = ({ groupName, topicName, first }: FailedName): Item =>
  itemKey(keys.failed(groupName, topicName, first))

/** What a later record need not have. */
export const optionalAttributes = [
  'originQueueId',
  'originOffset',
  'bizId',
  'errorKind',
  'error',
  'resentAtMs',
  'settledAtMs',
  'dropReason',
  'claimedUntilMs',
] as const

const numeric = (values: Record<string, number | undefined>): Item =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, num(value)]])),
  )
const texts = (values: Record<string, string | undefined>): Item =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, str(value)]])),
  )

/** All but the key. */
export const failedAttributes = (record: FailedMessage): Item => {
  const { groupName, topicName, first, origin, state, resends, retryCount, attempts, place, endsAtMs } = record
  const { bizId, errorKind, error, dropReason, lastFailedAtMs, resentAtMs, settledAtMs, claimedUntilMs } = record
  return {
    ...texts({ groupName, topicName, state, bizId, errorKind, error, dropReason }),
    ...numeric({ firstAtMs: first.atMs, firstQueueId: first.queueId, firstOffset: first.offset }),
    ...numeric({ originQueueId: origin?.queueId, originOffset: origin?.offset }),
    ...numeric({ resends, retryCount, attempts, queueId: place.queueId, offset: place.offset }),
    ...numeric({ lastFailedAtMs, resentAtMs, settledAtMs, claimedUntilMs, endsAtMs }),
    x: ttl(endsAtMs),
  }
}

export const itemOfFailed = (record: FailedMessage): Item => ({ ...failedKey(record), ...failedAttributes(record) })

export function failedOf(item: Item): FailedMessage {
  const optionalNumber = <K extends string>(name: K) => (item[name] ? { [name]: numOf(item, name) } : {})
  const optionalText = <K extends string>(name: K) => (item[name] ? { [name]: strOf(item, name) } : {})
  return {
    groupName: strOf(item, 'groupName'),
    topicName: strOf(item, 'topicName'),
    first: {
      atMs: numOf(item, 'firstAtMs'),
      queueId: numOf(item, 'firstQueueId'),
      offset: numOf(item, 'firstOffset'),
    },
    ...(item.originQueueId && {
      origin: { queueId: numOf(item, 'originQueueId'), offset: numOf(item, 'originOffset') },
    }),
    state: strOf(item, 'state') as FailedState,
    resends: numOf(item, 'resends'),
    retryCount: numOf(item, 'retryCount'),
    attempts: numOf(item, 'attempts'),
    place: { queueId: numOf(item, 'queueId'), offset: numOf(item, 'offset') },
    ...optionalText('bizId'),
    ...optionalText('errorKind'),
    ...optionalText('error'),
    lastFailedAtMs: numOf(item, 'lastFailedAtMs'),
    ...optionalNumber('resentAtMs'),
    ...optionalNumber('settledAtMs'),
    ...optionalText('dropReason'),
    ...optionalNumber('claimedUntilMs'),
    endsAtMs: numOf(item, 'endsAtMs'),
  }
}
