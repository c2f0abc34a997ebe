import type { IdKind, Queue, Topic, TopicSnapshot } from '../../core/model.ts'
import { nameRestMs, type RegistryStore, removalKeptMs } from '../../core/store.ts'
import { keys } from '../keys.ts'
import { type Item, num, numOf, str, strOf, ttl } from './attributes.ts'
import { allOf, exists, expressions, isNew, setAll } from './expressions.ts'
import { itemKey, itemOfQueue, itemOfTopic, queueOf, topicOf } from './items.ts'
import { notBeingRemoved, type RegistryContext } from './registry.ts'

type Topics = Pick<
  RegistryStore,
  | 'takeIds'
  | 'createTopic'
  | 'updateTopic'
  | 'addQueues'
  | 'beginTopicRemoval'
  | 'cancelTopicRemoval'
  | 'removeTopicQueues'
  | 'removeTopic'
  | 'setReadOnly'
  | 'removeQueue'
  | 'readTopic'
  | 'listTopics'
  | 'checkpointQueue'
  | 'listGroups'
>

const ifRemovedBy = (removal: string) =>
  expressions({ ConditionExpression: '#removal = :removal' }, { removal: str(removal) })

/** Ids, topics, their queues, and the lists of names. A consistent read costs 1 read unit for each 4 KB. */
export function createTopics({ requests, registryTable }: RegistryContext): Topics {
  /** 1 consistent request for each 1 MB of names; 1 read unit for each 4 KB (some 50 names). */
  async function listNames(operation: 'listTopics' | 'listGroups', kind: 'topic' | 'group', after = '', limit: number) {
    // No name is empty, so `> ''` would do; DynamoDB takes no empty text in a key condition.
    const isAfter = after === '' ? '' : ' AND #sk > :after'
    const items = await requests.query(
      operation,
      {
        TableName: registryTable,
        ConsistentRead: true,
        ...expressions(
          { KeyConditionExpression: `#pk = :pk${isAfter}` },
          { pk: str(keys.namesPartition(kind)), ...(after !== '' && { after: str(after) }) },
        ),
      },
      limit,
    )
    return items.map(item => strOf(item, 'sk'))
  }

  return {
    /** 1 write unit, however many ids. A repeat takes others: ids may be skipped, never given out twice. */
    async takeIds(kind: IdKind, count: number): Promise<number> {
      const answer = await requests.update('takeIds', 'repeatable', {
        TableName: registryTable,
        Key: itemKey(keys.counter(kind)),
        ReturnValues: 'UPDATED_NEW',
        ...expressions({ UpdateExpression: 'ADD #lastId :count' }, { count: num(count) }),
      })
      if (answer.refused || answer.item === undefined) throw new TypeError('an unconditional update has no answer')
      return numOf(answer.item, 'lastId') - count + 1
    },

    /** A transaction of 3 items and one for each queue: 2 write units each. */
    async createTopic(topic: Topic, queues: readonly Queue[]) {
      const answer = await requests.transact('createTopic', 'once', [
        { Put: { TableName: registryTable, Item: itemOfTopic(topic), ...expressions({ ConditionExpression: isNew }) } },
        {
          Delete: {
            TableName: registryTable,
            Key: itemKey(keys.topicRemoval(topic.name)),
            ...expressions(
              { ConditionExpression: `${isNew} OR #removedAtMs <= :rested` },
              { rested: num(topic.createdAtMs - nameRestMs) },
            ),
          },
        },
        { Put: { TableName: registryTable, Item: itemKey(keys.name('topic', topic.name)) } },
        ...queues.map(queue => ({ Put: { TableName: registryTable, Item: itemOfQueue(queue) } })),
      ])
      if (!answer.refused) return 'created'
      return answer.refusals[0] !== undefined ? 'exists' : 'removed_lately'
    },

    /** A transaction of 2 items and one for each queue: 2 write units each. */
    async addQueues(topicName: string, queues: readonly Queue[], additions?: number) {
      const clauses = {
        topicExists: exists,
        ...(additions === 0 && { noneWereAdded: 'attribute_not_exists(#additions)' }),
        ...(additions && { noneWereAddedSince: '#additions = :additions' }),
      }
      const answer = await requests.transact('addQueues', 'once', [
        {
          Update: {
            TableName: registryTable,
            Key: itemKey(keys.topic(topicName)),
            ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
            ...expressions(
              { UpdateExpression: 'ADD #additions :one', ConditionExpression: allOf(clauses) },
              { one: num(1), ...(additions && { additions: num(additions) }) },
            ),
          },
        },
        { ConditionCheck: notBeingRemoved(registryTable, topicName) },
        ...queues.map(queue => ({
          Put: { TableName: registryTable, Item: itemOfQueue(queue), ...expressions({ ConditionExpression: isNew }) },
        })),
      ])
      if (!answer.refused) return 'added'
      const [ofTopic, ofRemoval] = answer.refusals
      return ofRemoval !== undefined || (ofTopic && ofTopic.old === undefined) ? 'unknown_topic' : 'conflict'
    },

    /** A transaction of 2 items: 4 write units. */
    async beginTopicRemoval(topicName: string, removal: string) {
      const topicExists = expressions({ ConditionExpression: exists })
      const answer = await requests.transact('beginTopicRemoval', 'repeatable', [
        { ConditionCheck: { TableName: registryTable, Key: itemKey(keys.topic(topicName)), ...topicExists } },
        {
          Put: {
            TableName: registryTable,
            Item: { ...itemKey(keys.topicRemoval(topicName)), removal: str(removal) },
          },
        },
      ])
      return answer.refused ? 'unknown_topic' : 'begun'
    },

    /** 1 write unit. */
    async cancelTopicRemoval(topicName: string, removal: string) {
      await requests.delete('cancelTopicRemoval', 'repeatable', {
        TableName: registryTable,
        Key: itemKey(keys.topicRemoval(topicName)),
        ...ifRemovedBy(removal),
      })
    },

    /** A transaction of 1 item and one for each queue: 2 write units each. */
    async removeTopicQueues(topicName: string, removal: string, queueIds: readonly number[]) {
      const answer = await requests.transact('removeTopicQueues', 'repeatable', [
        {
          ConditionCheck: {
            TableName: registryTable,
            Key: itemKey(keys.topicRemoval(topicName)),
            ...ifRemovedBy(removal),
          },
        },
        ...queueIds.map(queueId => ({
          Delete: { TableName: registryTable, Key: itemKey(keys.queue(topicName, queueId)) },
        })),
      ])
      return answer.refused ? 'overtaken' : 'removed'
    },

    /** A transaction of 3 items: 6 write units. */
    async removeTopic(topicName: string, removal: string, nowMs: number) {
      const left = {
        ...itemKey(keys.topicRemoval(topicName)),
        removal: str(removal),
        removedAtMs: num(nowMs),
        x: ttl(nowMs + removalKeptMs),
      }
      const answer = await requests.transact('removeTopic', 'repeatable', [
        { Put: { TableName: registryTable, Item: left, ...ifRemovedBy(removal) } },
        { Delete: { TableName: registryTable, Key: itemKey(keys.topic(topicName)) } },
        { Delete: { TableName: registryTable, Key: itemKey(keys.name('topic', topicName)) } },
      ])
      return answer.refused ? 'overtaken' : 'removed'
    },

    /** 1 write unit. */
    async updateTopic(topicName: string, { maxLag, maxLagSeconds }: Pick<Topic, 'maxLag' | 'maxLagSeconds'>) {
      const values: Item = {
        // As it is: an update has to set something.
        name: str(topicName),
        ...(maxLag !== undefined && { maxLag: num(maxLag) }),
        ...(maxLagSeconds !== undefined && { maxLagSeconds: num(maxLagSeconds) }),
      }
      const answer = await requests.update('updateTopic', 'repeatable', {
        TableName: registryTable,
        Key: itemKey(keys.topic(topicName)),
        ...expressions({ UpdateExpression: setAll(values), ConditionExpression: exists }, values),
      })
      return answer.refused ? 'unknown_topic' : 'updated'
    },

    /** 1 write unit. */
    async setReadOnly(topicName: string, queueId: number, sinceMs: number | undefined) {
      const update =
        sinceMs === undefined
          ? 'REMOVE #readOnlySinceMs'
          : 'SET #readOnlySinceMs = if_not_exists(#readOnlySinceMs, :sinceMs)'
      const answer = await requests.update('setReadOnly', 'repeatable', {
        TableName: registryTable,
        Key: itemKey(keys.queue(topicName, queueId)),
        ...expressions(
          { UpdateExpression: update, ConditionExpression: exists },
          sinceMs === undefined ? {} : { sinceMs: num(sinceMs) },
        ),
      })
      return answer.refused ? 'unknown_queue' : 'set'
    },

    /** 1 write unit. */
    async removeQueue(topicName: string, queueId: number, sinceMs?: number) {
      const clauses = {
        isReadOnly: 'attribute_exists(#readOnlySinceMs)',
        ...(sinceMs !== undefined && { sinceThen: '#readOnlySinceMs = :sinceMs' }),
      }
      const answer = await requests.delete('removeQueue', 'once', {
        TableName: registryTable,
        Key: itemKey(keys.queue(topicName, queueId)),
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        ...expressions({ ConditionExpression: allOf(clauses) }, sinceMs === undefined ? {} : { sinceMs: num(sinceMs) }),
      })
      if (!answer.refused) return 'removed'
      return answer.old === undefined ? 'unknown_queue' : 'writable'
    },

    /** 1 consistent request for each 1 MB; 1 read unit for each 4 KB (some 30 queues). */
    async readTopic(topicName: string): Promise<TopicSnapshot | undefined> {
      const items = await requests.query('readTopic', {
        TableName: registryTable,
        ConsistentRead: true,
        ...expressions({ KeyConditionExpression: '#pk = :pk' }, { pk: str(keys.topicPartition(topicName)) }),
      })
      const kinds = Object.groupBy(items, item => strOf(item, 'sk').split('#', 1)[0] ?? '')
      const topic = kinds.TOPIC?.[0]
      if (topic === undefined) return undefined
      return {
        topic: topicOf(topic),
        queues: (kinds.QUEUE ?? []).map(queueOf),
        groupNames: (kinds.GROUP ?? []).map(item => strOf(item, 'groupName')),
        notifies: (kinds.GROUP ?? []).filter(item => item.notifies).map(item => strOf(item, 'groupName')),
      }
    },

    listTopics: ({ after, limit }) => listNames('listTopics', 'topic', after, limit),

    listGroups: ({ after, limit }) => listNames('listGroups', 'group', after, limit),

    /** 1 write unit, also if nothing changes. */
    async checkpointQueue(topicName: string, queueId: number, nextOffset: number) {
      const clauses = { queueExists: exists, checkpointMovesForward: '#checkpoint < :nextOffset' }
      const answer = await requests.update('checkpointQueue', 'repeatable', {
        TableName: registryTable,
        Key: itemKey(keys.queue(topicName, queueId)),
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        ...expressions(
          { UpdateExpression: 'SET #checkpoint = :nextOffset', ConditionExpression: allOf(clauses) },
          { nextOffset: num(nextOffset) },
        ),
      })
      if (!answer.refused) return 'advanced'
      return answer.old === undefined ? 'unknown_queue' : 'unchanged'
    },
  }
}
