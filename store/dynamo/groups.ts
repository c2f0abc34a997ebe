import type { TransactWriteItem } from '@aws-sdk/client-dynamodb'
import { kindOf } from '../../core/group/copy-names.ts'
import { failTopicName, topicNamesOf } from '../../core/group/fail-topics.ts'
import type { Group, GroupSettings, GroupSnapshot, Subscription, SubscriptionSettings } from '../../core/model.ts'
import type { AwakeGroup, GroupKind, RebalanceDone, RegistryStore } from '../../core/store.ts'
import { keys, subscriptionPrefix } from '../keys.ts'
import { num, numOf, str, strOf } from './attributes.ts'
import { allOf, exists, expressions, isNew, setAll } from './expressions.ts'
import {
  groupCopyOf,
  groupOf,
  groupSettingsAttributes,
  itemKey,
  itemOfCopy,
  itemOfGroup,
  itemOfSubscription,
  memberOf,
  queueOffsetOf,
  settingsAttributes,
  subscriptionOf,
} from './items.ts'
import { assignmentRaise, notBeingRemoved, type RegistryContext, raiseCounters, wake } from './registry.ts'

type Groups = Pick<
  RegistryStore,
  | 'createGroup'
  | 'updateGroup'
  | 'removeGroup'
  | 'readGroup'
  | 'readSubscriptions'
  | 'readGroupRecord'
  | 'createSubscription'
  | 'removeSubscription'
  | 'updateSubscription'
  | 'askRebalance'
  | 'raiseMeta'
  | 'finishRebalance'
  | 'listAwakeGroups'
  | 'sleepGroup'
>

/**
 * Groups, what they subscribe to, and which of them the tick has to look at.
 *
 * The costs are those of a group's record of up to 1 KB. Lists of addresses may make it ten times as large, and each write
 * of it with it.
 */
export function createGroups(context: RegistryContext): Groups {
  const { requests, registryTable: TableName } = context

  const tellOfSubscription = (groupName: string, kind: GroupKind): TransactWriteItem[] => {
    if (kind === 'consumer_copy') return [{ Update: raiseCounters(TableName, groupName, ['metaVersion', 'version']) }]
    const raised = raiseCounters(TableName, groupName, ['metaVersion', 'version', 'rebalanceAsked'])
    return [{ Update: raised }, wake(context, groupName)]
  }

  const recordAt = (topicName: string, groupName: string): TransactWriteItem[] => [
    { Put: { TableName, Item: { ...itemKey(keys.subscriber(topicName, groupName)), groupName: str(groupName) } } },
    { ConditionCheck: notBeingRemoved(TableName, topicName) },
  ]

  return {
    /** A transaction of 2 items, of a copy 3 or 4: 2 write units each. */
    async createGroup(group: Group) {
      const { name, origin } = group
      const items: TransactWriteItem[] = [
        { Put: { TableName, Item: itemOfGroup(group), ...expressions({ ConditionExpression: isNew }) } },
      ]
      if (kindOf(group) === 'group') items.push({ Put: { TableName, Item: itemKey(keys.name('group', name)) } })
      if (origin) {
        const originExists = expressions({ ConditionExpression: exists })
        items.push({ ConditionCheck: { TableName, Key: itemKey(keys.group(origin.groupName)), ...originExists } })
        items.push({ Put: { TableName, Item: itemOfCopy(name, origin) } })
      }
      const answer = await requests.transact('createGroup', 'once', items)
      if (!answer.refused) return 'created'
      return answer.refusals[0] !== undefined ? 'exists' : 'unknown_origin'
    },

    /** A transaction of 2 items: 4 write units. A repeat raises and asks once more, which does no harm. */
    async updateGroup(groupName: string, settings: GroupSettings) {
      const values = groupSettingsAttributes(settings)
      const raised = (['metaVersion', 'version', 'rebalanceAsked'] as const).map(each => `#${each} :one`).join(', ')
      const answer = await requests.transact('updateGroup', 'repeatable', [
        {
          Update: {
            TableName,
            Key: itemKey(keys.group(groupName)),
            ...expressions(
              { UpdateExpression: `${setAll(values)} ADD ${raised}`, ConditionExpression: exists },
              { ...values, one: num(1) },
            ),
          },
        },
        wake(context, groupName),
      ])
      return answer.refused ? 'unknown_group' : 'updated'
    },

    /** A transaction of 3 or 4 items: 2 write units each. */
    async removeGroup({ name, origin, version, rebalanceAsked }: Group) {
      const clauses = { nothingWasTold: '#version = :version', nothingWasAsked: '#rebalanceAsked = :rebalanceAsked' }
      const clause = expressions(
        { ConditionExpression: allOf(clauses) },
        { version: num(version), rebalanceAsked: num(rebalanceAsked) },
      )
      const answer = await requests.transact('removeGroup', 'once', [
        {
          Delete: {
            TableName,
            Key: itemKey(keys.group(name)),
            ...clause,
            ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          },
        },
        { Delete: { TableName, Key: itemKey(keys.name('group', name)) } },
        { Delete: { TableName, Key: itemKey(keys.awake(name)) } },
        ...(origin ? [{ Delete: { TableName, Key: itemKey(keys.copy(origin.groupName, name)) } }] : []),
      ])
      if (!answer.refused) return 'removed'
      return answer.refusals[0]?.old === undefined ? 'unknown_group' : 'conflict'
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
      const members = kinds.MEMBER ?? []
      return {
        group: groupOf(group),
        subscriptions: (kinds.SUB ?? []).map(subscriptionOf),
        offsets: (kinds.OFFSET ?? []).map(queueOffsetOf),
        members: members.filter(item => !item.isLost).map(memberOf),
        lost: members.filter(item => item.isLost).map(item => numOf(item, 'consumerId')),
        copies: (kinds.COPY ?? []).map(groupCopyOf),
      }
    },

    /** 1 consistent request for each 1 MB; 1 read unit for each 4 KB (some 12 subscriptions). */
    async readSubscriptions(groupName: string) {
      const items = await requests.query('readSubscriptions', {
        TableName,
        ConsistentRead: true,
        ...expressions(
          { KeyConditionExpression: '#pk = :pk AND begins_with(#sk, :prefix)' },
          { pk: str(keys.groupPartition(groupName)), prefix: str(subscriptionPrefix) },
        ),
      })
      return items.map(subscriptionOf)
    },

    /** 0.5 read units. */
    async readGroupRecord(groupName: string) {
      const item = await requests.get('readGroupRecord', { TableName, Key: itemKey(keys.group(groupName)) })
      return item && groupOf(item)
    },

    /** A transaction of 5 items, with a fail topic of 7: 2 write units each. Of a copy for one consumer 2 items. */
    async createSubscription(subscription: Subscription, kind: GroupKind = 'group') {
      const { groupName } = subscription
      const topicNames = kind === 'group' ? topicNamesOf(subscription) : []
      const answer = await requests.transact('createSubscription', 'once', [
        { Put: { TableName, Item: itemOfSubscription(subscription), ...expressions({ ConditionExpression: isNew }) } },
        ...tellOfSubscription(groupName, kind),
        ...topicNames.flatMap(name => recordAt(name, groupName)),
      ])
      if (!answer.refused) return 'created'
      if (answer.refusals[1] !== undefined) return 'unknown_group'
      return answer.refusals[0] !== undefined ? 'exists' : 'unknown_topic'
    },

    /** A transaction of 5 items: 2 write units each. Of a copy for one consumer 2 items. */
    async removeSubscription(groupName: string, topicName: string, kind: GroupKind = 'group') {
      const clause = expressions({ ConditionExpression: exists })
      const topicNames = [topicName, failTopicName(groupName, topicName)]
      const answer = await requests.transact('removeSubscription', 'once', [
        { Delete: { TableName, Key: itemKey(keys.subscription(groupName, topicName)), ...clause } },
        ...tellOfSubscription(groupName, kind),
        ...(kind === 'group' ? topicNames : []).map(name => {
          return { Delete: { TableName, Key: itemKey(keys.subscriber(name, groupName)) } }
        }),
      ])
      return answer.refused ? 'unknown_subscription' : 'removed'
    },

    /**
     * A transaction of 2 items, with a fail topic of 5: 2 write units each. A repeat raises the versions once more, which
     * does no harm.
     */
    async updateSubscription(
      groupName: string,
      topicName: string,
      { failTopicId, ...settings }: SubscriptionSettings & Pick<Subscription, 'failTopicId'>,
    ) {
      const hasFailTopic = failTopicId !== undefined
      const values = { ...settingsAttributes(settings), ...(hasFailTopic && { failTopicId: num(failTopicId) }) }
      const answer = await requests.transact('updateSubscription', 'repeatable', [
        {
          Update: {
            TableName,
            Key: itemKey(keys.subscription(groupName, topicName)),
            ...expressions({ UpdateExpression: setAll(values), ConditionExpression: exists }, values),
          },
        },
        ...(hasFailTopic
          ? [...tellOfSubscription(groupName, 'group'), ...recordAt(failTopicName(groupName, topicName), groupName)]
          : [{ Update: raiseCounters(TableName, groupName, ['metaVersion', 'version']) }]),
      ])
      if (!answer.refused) return 'updated'
      const isKnown = answer.refusals[0] === undefined && answer.refusals[1] === undefined
      return isKnown ? 'unknown_topic' : 'unknown_subscription'
    },

    /**
     * 2 write units. Not a transaction, in which those who ask at once would meet: who dies in between leaves a group that
     * is asked and asleep, until one of its members is heard. A repeat asks once more, which does no harm.
     */
    async askRebalance(groupName: string): Promise<Group | undefined> {
      const answer = await requests.update('askRebalance', 'repeatable', {
        ...raiseCounters(TableName, groupName, ['rebalanceAsked']),
        ReturnValues: 'ALL_NEW',
      })
      if (answer.refused || answer.item === undefined) return undefined
      await requests.put('askRebalance', 'repeatable', wake(context, groupName).Put)
      return groupOf(answer.item)
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
        ReturnValues: 'ALL_NEW',
        ...expressions(
          { UpdateExpression: `SET #rebalanceDone = :asked${raises}`, ConditionExpression: allOf(clauses) },
          {
            asked: num(asked),
            expectedRbVersion: num(expectedRbVersion),
            ...(moved && { nowMs: num(nowMs), one: num(1) }),
          },
        ),
      })
      if (answer.refused || answer.item === undefined) return 'conflict'
      return numOf(answer.item, 'rebalanceAsked') > asked ? 'asked_again' : 'done'
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
