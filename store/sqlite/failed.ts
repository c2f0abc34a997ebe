import type { FailedStore } from '../../core/failed/port.ts'
import { decideRecord, type FailedMessage, isAsRead, mergeRecord } from '../../core/failed/records.ts'
import { keys } from '../keys.ts'
import type { Database } from './database.ts'
import type { Records } from './records.ts'

const keyOf = ({ groupName, topicName, first }: Pick<FailedMessage, 'groupName' | 'topicName' | 'first'>) =>
  keys.failed(groupName, topicName, first)

export function createFailed(database: Database, written: Records, durable: Records): FailedStore {
  return {
    recordFailed: next =>
      database.write(() => {
        const current = written.get<FailedMessage>(keyOf(next))
        const decided = decideRecord(current, next)
        if (decided === 'replace') written.put(keyOf(next), mergeRecord(current, next), next.endsAtMs)
        return decided === 'superseded' ? 'superseded' : 'recorded'
      }),

    replaceFailed: (read, next, nowMs) =>
      database.write(() => {
        if (!isAsRead(written.get<FailedMessage>(keyOf(read)), read, nowMs)) return 'refused'
        written.put(keyOf(next), next, next.endsAtMs)
        return 'replaced'
      }),

    readFailed: names =>
      database.read(() =>
        names.map(name => durable.get<FailedMessage>(keyOf(name))).filter(record => record !== undefined),
      ),

    listFailed: ({ groupName, topicName, from, to, direction, limit }) =>
      database.read(() => {
        const [low, high] = [from, to].map(first => keys.failed(groupName, topicName, first).sk)
        const range = { pk: keys.failedPartition(groupName, topicName), from: low ?? '', to: high ?? '' }
        return durable.listRange<FailedMessage>({ ...range, isBackward: direction === 'backward', limit })
      }),
  }
}
