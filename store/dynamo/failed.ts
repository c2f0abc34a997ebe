import type { FailedStore } from '../../core/failed/port.ts'
import { decideRecord, type FailedMessage, keepsError } from '../../core/failed/records.ts'
import { keys } from '../keys.ts'
import { type Item, num, str } from './attributes.ts'
import { allOf, exists, expressions, setAll } from './expressions.ts'
import { failedAttributes, failedKey, failedOf, itemOfFailed, optionalAttributes } from './failed-items.ts'
import type { RegistryContext } from './registry.ts'

/** Failed messages. A write costs 1 write unit for each 1 KB of the record, which only a long error makes larger. */
export function createFailed({ requests, registryTable: TableName }: RegistryContext): FailedStore {
  return {
    /** 1 write unit, also if refused. A repeat finds what it has written itself, which is as well. */
    async recordFailed(next: FailedMessage) {
      const attributes = failedAttributes(next)
      const kept: readonly string[] = keepsError(next) ? ['errorKind', 'error'] : []
      const remove = optionalAttributes.filter(name => !(name in attributes) && !kept.includes(name))
      const answer = await requests.update('recordFailed', 'repeatable', {
        TableName,
        Key: failedKey(next),
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        ...expressions(
          {
            UpdateExpression: `${setAll(attributes)}${remove.length > 0 ? ` REMOVE ${remove.map(name => `#${name}`).join(', ')}` : ''}`,
            ConditionExpression: Object.values(reasons(next)).join(' OR '),
          },
          attributes,
        ),
      })
      if (!answer.refused) return 'recorded'
      const decided = decideRecord(answer.old && failedOf(answer.old), next)
      return decided === 'known' ? 'recorded' : 'superseded'
    },

    /** 1 write unit, also if refused. */
    async replaceFailed(read: FailedMessage, next: FailedMessage, nowMs: number) {
      const clauses = {
        isThere: exists,
        isInTheSameState: '#state = :state',
        isNoLaterOne: '#resends = :resends AND #retryCount = :retryCount',
        isNotBeingResent: '(attribute_not_exists(#claimedUntilMs) OR #claimedUntilMs <= :nowMs)',
      }
      const answer = await requests.put('replaceFailed', 'once', {
        TableName,
        Item: itemOfFailed(next),
        ...expressions(
          { ConditionExpression: allOf(clauses) },
          {
            state: str(read.state),
            resends: num(read.resends),
            retryCount: num(read.retryCount),
            nowMs: num(nowMs),
          },
        ),
      })
      return answer.refused ? 'refused' : 'replaced'
    },

    /** 1 consistent request for each 100; 1 read unit for each, of up to 4 KB. */
    async readFailed(names) {
      return (await requests.getMany('readFailed', TableName, names.map(failedKey))).map(failedOf)
    },

    /** 1 consistent request for each 1 MB; 1 read unit for each 4 KB (some eight records). */
    async listFailed({ groupName, topicName, from, to, direction, limit }) {
      const bounds: Item = {
        pk: str(keys.failedPartition(groupName, topicName)),
        from: str(keys.failed(groupName, topicName, from).sk),
        to: str(keys.failed(groupName, topicName, to).sk),
      }
      const input = {
        TableName,
        ConsistentRead: true,
        ScanIndexForward: direction === 'forward',
        ...expressions({ KeyConditionExpression: '#pk = :pk AND #sk BETWEEN :from AND :to' }, bounds),
      }
      return (await requests.query('listFailed', input, limit)).map(failedOf)
    },
  }
}

/** When a record may take the place of what is there: as `decideRecord` says. */
const reasons = ({ state }: FailedMessage) => ({
  isNew: 'attribute_not_exists(#pk)',
  isOfLaterResend: '#resends < :resends',
  hasFailedMore: '(#resends = :resends AND #retryCount < :retryCount)',
  ...(state === 'succeeded' && {
    hasSucceeded: '(#resends = :resends AND #retryCount = :retryCount AND #state <> :state)',
  }),
})
