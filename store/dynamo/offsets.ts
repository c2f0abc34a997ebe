import { originOf } from '../../core/group/fail-topics.ts'
import { isFencing } from '../../core/group/handover.ts'
import type { QueueOffset } from '../../core/model.ts'
import type { OffsetRemoval, QueueMove, QueuePlace, RegistryStore } from '../../core/store.ts'
import { keys } from '../keys.ts'
import { bool, type Item, num, str } from './attributes.ts'
import { allOf, exists, expressions, isNew } from './expressions.ts'
import { itemKey, itemOfQueueOffset, queueOffsetOf } from './items.ts'
import type { Operation } from './meter.ts'
import {
  claimNames,
  deathNames,
  deathParts,
  offsetKey,
  type RegistryContext,
  raiseCounters,
  trialNames,
} from './registry.ts'

type Offsets = Pick<
  RegistryStore,
  'readQueueOffset' | 'addQueueOffset' | 'removeQueueOffset' | 'moveQueue' | 'resetOffset' | 'setStopped'
>

/** A group's places in its queues: that they come and go, who owns each, and what is changed of them by hand. */
export function createOffsets(context: RegistryContext): Offsets {
  const { requests, transactInTurn: transact, registryTable: TableName } = context

  /** Changes a queue's record by hand, and tells the group. False: there is no such queue. */
  async function change(
    operation: Operation,
    place: QueuePlace,
    UpdateExpression: string,
    values: Item,
  ): Promise<boolean> {
    const answer = await transact(operation, 'repeatable', place.groupName, [
      {
        Update: {
          TableName,
          Key: offsetKey(place),
          ...expressions({ UpdateExpression, ConditionExpression: exists }, values),
        },
      },
      { Update: raiseCounters(TableName, place.groupName, ['metaVersion', 'version']) },
    ])
    return !answer.refused
  }

  return {
    /** 1 read unit. A query, so that it takes no permission that its callers do not need anyway. */
    async readQueueOffset({ groupName, queueOffsetId }: QueuePlace) {
      const { pk, sk } = keys.queueOffset(groupName, queueOffsetId)
      const items = await requests.query('readQueueOffset', {
        TableName,
        ConsistentRead: true,
        ...expressions({ KeyConditionExpression: '#pk = :pk AND #sk = :sk' }, { pk: str(pk), sk: str(sk) }),
      })
      return items[0] && queueOffsetOf(items[0])
    },

    /** A transaction of 3 items, of which one is only looked at: 6 write units. */
    async addQueueOffset(offset: QueueOffset) {
      const ofQueue = {
        ...itemKey(keys.offsetOfQueue(offset.groupName, offset.queueId)),
        queueOffsetId: num(offset.queueOffsetId),
      }
      const condition = expressions({ ConditionExpression: isNew })
      const answer = await transact('addQueueOffset', 'once', offset.groupName, [
        { Put: { TableName, Item: ofQueue, ...condition } },
        { Put: { TableName, Item: itemOfQueueOffset(offset), ...condition } },
        {
          ConditionCheck: {
            TableName,
            Key: itemKey(keys.group(offset.groupName)),
            ...expressions({ ConditionExpression: exists }),
          },
        },
      ])
      if (!answer.refused) return 'created'
      return answer.refusals[2] !== undefined ? 'unknown_group' : 'exists'
    },

    /** The same. */
    async removeQueueOffset(offset: QueueOffset, because: OffsetRemoval) {
      const { groupName, topicName, queueId, queueOffsetId } = offset
      const reason =
        because === 'unsubscribed' ? keys.subscription(groupName, originOf(offset)) : keys.queue(topicName, queueId)
      const isThisOne = expressions(
        { ConditionExpression: `${isNew} OR #queueOffsetId = :queueOffsetId` },
        { queueOffsetId: num(queueOffsetId) },
      )
      const answer = await transact('removeQueueOffset', 'repeatable', groupName, [
        {
          ConditionCheck: { TableName, Key: itemKey(reason), ...expressions({ ConditionExpression: isNew }) },
        },
        { Delete: { TableName, Key: itemKey(keys.offsetOfQueue(groupName, queueId)), ...isThisOne } },
        { Delete: { TableName, Key: itemKey(keys.queueOffset(groupName, queueOffsetId)) } },
      ])
      if (!answer.refused) return 'removed'
      // Or the group has another place in the queue by now: then this one went before that came.
      return answer.refusals[0] !== undefined ? 'needed' : 'removed'
    },

    /** A transaction of 2 items, of which one is only looked at: 4 write units. */
    async moveQueue(move: QueueMove) {
      const { expectedNextConsumerId: expectedNext, consumerId, leaving, rbVersion } = move
      const clauses = {
        versionIsAsRead: '#offsetVersion = :expectedVersion',
        ownerIsAsRead: '#consumerId = :expectedOwner',
        nextIsAsRead:
          expectedNext === undefined ? 'attribute_not_exists(#nextConsumerId)' : '#nextConsumerId = :expectedNext',
      }
      const death = deathParts(move.ownerIsLost)
      const set = `SET #rbVersion = :rbVersion, #consumerId = :consumerId${death.set}`
      const leave = leaving
        ? ', #nextConsumerId = :next, #leavingSinceMs = :since'
        : ' REMOVE #nextConsumerId, #leavingSinceMs'
      const counted = [...(isFencing(move) ? ['#offsetVersion :one'] : []), ...death.add]
      const count = counted.length > 0 ? ` ADD ${counted.join(', ')}` : ''
      const updated = expressions(
        { UpdateExpression: `${set}${leave}${count}`, ConditionExpression: allOf(clauses) },
        {
          consumerId: num(consumerId),
          rbVersion: num(rbVersion),
          expectedVersion: num(move.expectedOffsetVersion),
          expectedOwner: num(move.expectedConsumerId),
          ...(expectedNext !== undefined && { expectedNext: num(expectedNext) }),
          ...(leaving && { next: num(leaving.nextConsumerId), since: num(leaving.sinceMs) }),
          ...(count && { one: num(1) }),
        },
      )
      const told = { nobodyToldSince: '#rbVersion = :toldVersion' }
      const untold = expressions({ ConditionExpression: allOf(told) }, { toldVersion: num(rbVersion - 1) })
      const answer = await transact('moveQueue', 'once', move.groupName, [
        { Update: { TableName, Key: offsetKey(move), ...updated } },
        { ConditionCheck: { TableName, Key: itemKey(keys.group(move.groupName)), ...untold } },
      ])
      return answer.refused ? 'conflict' : 'moved'
    },

    /** A transaction of 2 items: 4 write units. A repeat raises the versions once more, which does no harm. */
    async resetOffset(place: QueuePlace, offset: number) {
      const update = `SET #offset = :offset ADD #offsetVersion :one REMOVE ${claimNames}, ${trialNames}, ${deathNames}`
      const isKnown = await change('resetOffset', place, update, { offset: num(offset), one: num(1) })
      return isKnown ? 'reset' : 'unknown_queue'
    },

    /** The same. */
    async setStopped(place: QueuePlace, isStopped: boolean) {
      const isKnown = await change('setStopped', place, 'SET #isStopped = :isStopped', { isStopped: bool(isStopped) })
      return isKnown ? 'set' : 'unknown_queue'
    },
  }
}
