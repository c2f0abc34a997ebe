import type { Group, GroupSnapshot, Subscription, SubscriptionSettings } from '../../core/model.ts'
import type { AwakeGroup, RebalanceDone, RegistryStore } from '../../core/store.ts'
import { keys } from '../keys.ts'
import { num, numOf, str, strOf } from './attributes.ts'
import { allOf, exists, expressions, isNew, setAll } from './expressions.ts'
import {
  groupOf,
  itemKey,
  itemOfGroup,
  itemOfSubscription,
  memberOf,
  queueOffsetOf,
  settingsAttributes,
  subscriptionOf,
} from './items.ts'
import { assignmentRaise, type RegistryContext, raiseCounters, wake } from './registry.ts'

type Groups = Pick<
  RegistryStore,
  | 'createGroup'
  | 'readGroup'
  | 'readGroupRecord'
  | 'createSubscription'
  | 'updateSubscription'
  | 'askRebalance'
  | 'raiseMeta'
  | 'finishRebalance'
  | 'listAwakeGroups'
  | 'sleepGroup'
>

/** Groups, what they subscribe to, and which of them the tick has to look at. */
export function createGroups(context: RegistryContext): Groups {
  const { requests, registryTable: TableName } = context

  const readRecord = async (
    operation: 'readGroupRecord' | 'askRebalance',
    groupName: string,
    ConsistentRead: boolean,
  ): Promise<Group | undefined> => {
    const item = await requests.get(operation, { TableName, Key: itemKey(keys.group(groupName)), ConsistentRead })
    return item && groupOf(item)
  }

  return {
    /** A transaction of 2 items: 4 write units. */
    async createGroup(group: Group) {
      const answer = await requests.transact('createGroup', 'once', [
        { Put: { TableName, Item: itemOfGroup(group), ...expressions({ ConditionExpression: isNew }) } },
        { Put: { TableName, Item: itemKey(keys.name('group', group.name)) } },
      ])
      return answer.refused ? 'exists' : 'created'
    },

    /**
     * 1 consistent request for each 1 MB; 1 read unit for each 4 KB (some 12 queues with their members). Each record is
     * the newest, but a write may fall between two of them: whoever acts on it states the versions that it has read.
     */
    async readGroup(groupName: string): Promise<GroupSnapshot | undefined> {
      const items = await requests.query('readGroup', {
        TableName,
        ConsistentRead: true,
        ...expressions({ KeyConditionExpression: '#pk = :pk' }, { pk: str(keys.groupPartition(groupName)) }),
      })
      const kinds = Object.groupBy(items, item => strOf(item, 'sk').split('#', 1)[0] ?? '')
      const group = kinds.GROUP?.[0]
      if (group === undefined) return undefined
      return {
        group: groupOf(group),
        subscriptions: (kinds.SUB ?? []).map(subscriptionOf),
        offsets: (kinds.OFFSET ?? []).map(queueOffsetOf),
        members: (kinds.MEMBER ?? []).map(memberOf),
      }
    },

    /** 0.5 read units. */
    readGroupRecord: groupName => readRecord('readGroupRecord', groupName, false),

    /** A transaction of 4 items: 8 write units. */
    async createSubscription(subscription: Subscription) {
      const { groupName, topicName } = subscription
      const answer = await requests.transact('createSubscription', 'once', [
        { Put: { TableName, Item: itemOfSubscription(subscription), ...expressions({ ConditionExpression: isNew }) } },
        { Update: raiseCounters(TableName, groupName, ['metaVersion', 'version', 'rebalanceAsked']) },
        { Put: { TableName, Item: { ...itemKey(keys.subscriber(topicName, groupName)), groupName: str(groupName) } } },
        wake(context, groupName),
      ])
      if (!answer.refused) return 'created'
      return answer.refusals[0] !== undefined ? 'exists' : 'unknown_group'
    },

    /** A transaction of 2 items: 4 write units. A repeat raises the versions once more, which does no harm. */
    async updateSubscription(groupName: string, topicName: string, settings: SubscriptionSettings) {
      const values = settingsAttributes(settings)
      const answer = await requests.transact('updateSubscription', 'repeatable', [
        {
          Update: {
            TableName,
            Key: itemKey(keys.subscription(groupName, topicName)),
            ...expressions({ UpdateExpression: setAll(values), ConditionExpression: exists }, values),
          },
        },
        { Update: raiseCounters(TableName, groupName, ['metaVersion', 'version']) },
      ])
      return answer.refused ? 'unknown_subscription' : 'updated'
    },

    /** A transaction of 2 items and a read of the group, which a transaction does not answer with: 4 write units, 1 read unit. */
    async askRebalance(groupName: string): Promise<Group | undefined> {
      const answer = await requests.transact('askRebalance', 'repeatable', [
        { Update: raiseCounters(TableName, groupName, ['rebalanceAsked']) },
        wake(context, groupName),
      ])
      return answer.refused ? undefined : readRecord('askRebalance', groupName, true)
    },

    /** 1 write unit. A repeat raises the versions once more, which does no harm. */
    async raiseMeta(groupName: string): Promise<Group | undefined> {
      const answer = await requests.update('raiseMeta', 'repeatable', {
        ...raiseCounters(TableName, groupName, ['metaVersion', 'version']),
        ReturnValues: 'ALL_NEW',
      })
      return answer.refused || answer.item === undefined ? undefined : groupOf(answer.item)
    },

    /** 1 write unit. */
    async finishRebalance({ groupName, asked, moved, expectedRbVersion, nowMs }: RebalanceDone) {
      const clauses = {
        assignmentIsAsRead: '#rbVersion = :expectedRbVersion',
        nothingNewerWasAnswered: '#rebalanceDone <= :asked',
      }
      const raises = moved ? `, ${assignmentRaise}` : ''
      const answer = await requests.update('finishRebalance', 'once', {
        TableName,
        Key: itemKey(keys.group(groupName)),
        ...expressions(
          { UpdateExpression: `SET #rebalanceDone = :asked${raises}`, ConditionExpression: allOf(clauses) },
          {
            asked: num(asked),
            expectedRbVersion: num(expectedRbVersion),
            ...(moved && { nowMs: num(nowMs), one: num(1) }),
          },
        ),
      })
      return answer.refused ? 'conflict' : 'done'
    },

    /** 1 consistent request for each 1 MB; 1 read unit for each 4 KB (some 60 groups). */
    async listAwakeGroups(): Promise<AwakeGroup[]> {
      const items = await requests.query('listAwakeGroups', {
        TableName,
        ConsistentRead: true,
        ...expressions({ KeyConditionExpression: '#pk = :pk' }, { pk: str(keys.awakePartition) }),
      })
      return items.map(item => ({ groupName: strOf(item, 'sk'), asked: numOf(item, 'asked') }))
    },

    /** 1 write unit. */
    async sleepGroup({ groupName, asked }: AwakeGroup): Promise<void> {
      const clauses = { nothingWasAskedSince: '#asked = :asked' }
      await requests.delete('sleepGroup', 'repeatable', {
        TableName,
        Key: itemKey(keys.awake(groupName)),
        ...expressions({ ConditionExpression: allOf(clauses) }, { asked: num(asked) }),
      })
    },
  }
}
