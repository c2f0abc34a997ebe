import type { TransactWriteItem } from '@aws-sdk/client-dynamodb'
import type { TargetStore } from '../../core/notify/port.ts'
import { type Delivery, deliveriesKeptMs, type Target, type TargetRef } from '../../core/notify/target.ts'
import { keys } from '../keys.ts'
import { type Item, num, numOf, str, strOf, ttl } from './attributes.ts'
import { exists, expressions, isNew } from './expressions.ts'
import { itemKey } from './items.ts'
import type { RegistryContext } from './registry.ts'

/**
 * Targets, and what was sent to them. A target's record is some 500 bytes, and 40 more for each queue that it has not been
 * told of; a write costs 1 write unit for each KB of it.
 */
export function createTargets({ requests, registryTable: TableName }: RegistryContext): TargetStore {
  return {
    /** A transaction of 1 or, of a group, 2 items: 2 write units each. */
    async createTarget(target) {
      const put = { TableName, Item: itemOfTarget(target), ...expressions({ ConditionExpression: isNew }) }
      const listed = listedAs(target).map(Key => ({ Put: { TableName, Item: Key } }))
      const answer = await requests.transact('createTarget', 'once', [{ Put: put }, ...listed])
      return answer.refused ? 'exists' : 'created'
    },

    /** 1 write unit for each KB, also if refused. */
    async replaceTarget(next) {
      const answer = await requests.put('replaceTarget', 'once', {
        TableName,
        Item: itemOfTarget(next),
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        ...expressions({ ConditionExpression: '#revision = :read' }, { read: num(next.revision - 1) }),
      })
      if (!answer.refused) return { outcome: 'replaced' }
      return { outcome: 'conflict', current: answer.old && targetOf(answer.old) }
    },

    /** A transaction of 1 or, of a group, 2 items: 2 write units each. */
    async removeTarget(ref) {
      const items: TransactWriteItem[] = [
        { Delete: { TableName, Key: itemKey(keys.target(ref)), ...expressions({ ConditionExpression: exists }) } },
        ...listedAs(ref).map(Key => ({ Delete: { TableName, Key } })),
      ]
      const answer = await requests.transact('removeTarget', 'once', items)
      return answer.refused ? 'unknown_target' : 'removed'
    },

    /** 1 consistent request; 1 read unit for each 4 KB. */
    async readTargets(owner) {
      const items = await requests.query('readTargets', {
        TableName,
        ConsistentRead: true,
        ...expressions({ KeyConditionExpression: '#pk = :pk' }, { pk: str(keys.targetsPartition(owner)) }),
      })
      return items.map(targetOf)
    },

    /** 1 consistent request for each 1 MB; 1 read unit for each 4 KB (some 60 targets). */
    async listGroupsWithTargets() {
      const items = await requests.query('listGroupsWithTargets', {
        TableName,
        ConsistentRead: true,
        ...expressions({ KeyConditionExpression: '#pk = :pk' }, { pk: str(keys.targetGroupsPartition) }),
      })
      return [...new Set(items.map(item => strOf(item, 'sk').split('#', 1)[0] ?? ''))]
    },

    /** 1 write unit, also if nothing changes. */
    async setNotifies(topicName, groupName, notifies) {
      const answer = await requests.update('setNotifies', 'repeatable', {
        TableName,
        Key: itemKey(keys.subscriber(topicName, groupName)),
        ...expressions(
          { UpdateExpression: notifies ? 'SET #notifies = :one' : 'REMOVE #notifies', ConditionExpression: exists },
          notifies ? { one: num(1) } : {},
        ),
      })
      return answer.refused ? 'unknown_subscriber' : 'set'
    },

    /** 1 write unit for each KB of it. */
    async addDelivery(ref, delivery) {
      await requests.put('addDelivery', 'repeatable', { TableName, Item: itemOfDelivery(ref, delivery) })
    },

    /** 1 consistent request for each 1 MB; 1 read unit for each 4 KB. */
    async listDeliveries(ref, { beforeMs = Number.MAX_SAFE_INTEGER, limit }) {
      const input = {
        TableName,
        ConsistentRead: true,
        ScanIndexForward: false,
        ...expressions(
          { KeyConditionExpression: '#pk = :pk AND #sk < :before' },
          { pk: str(keys.deliveriesPartition(ref)), before: str(keys.deliveriesBefore(beforeMs)) },
        ),
      }
      const items = await requests.query('listDeliveries', input, limit)
      return items.map(item => JSON.parse(strOf(item, 'delivery')))
    },
  }
}

/** Where the targets of a group are listed as well. */
const listedAs = ({ owner, name }: TargetRef): Item[] =>
  owner === 'alarms' ? [] : [itemKey(keys.targetOfGroup(owner.groupName, name))]

function itemOfTarget({ revision, state, ...target }: Target): Item {
  return {
    ...itemKey(keys.target(target)),
    revision: num(revision),
    target: str(JSON.stringify(target)),
    state: str(JSON.stringify(state)),
  }
}

const targetOf = (item: Item): Target => ({
  ...JSON.parse(strOf(item, 'target')),
  revision: numOf(item, 'revision'),
  state: JSON.parse(strOf(item, 'state')),
})

const itemOfDelivery = (ref: TargetRef, delivery: Delivery): Item => ({
  ...itemKey(keys.delivery(ref, delivery)),
  delivery: str(JSON.stringify(delivery)),
  x: ttl(delivery.atMs + deliveriesKeptMs),
})
