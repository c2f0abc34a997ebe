import { afterClaim, afterRenewal } from '../../core/group/claim.ts'
import { afterCommit, afterReset, decideCommit } from '../../core/group/commit.ts'
import { copyOf, kindOf } from '../../core/group/copy-names.ts'
import { failTopicName, originOf, topicNamesOf } from '../../core/group/fail-topics.ts'
import { afterMove } from '../../core/group/handover.ts'
import { askRebalance, finishRebalance, raiseAssignment, raiseMeta } from '../../core/group/versions.ts'
import type { Group, GroupCopy, QueueOffset, Subscription } from '../../core/model.ts'
import type { GroupKind, QueuePlace, RegistryStore } from '../../core/store.ts'
import { keys, subscriptionPrefix } from '../keys.ts'
import type { MemberRecord } from './consumers.ts'
import type { Database } from './database.ts'
import type { Records } from './records.ts'

type GroupOperations = Pick<
  RegistryStore,
  | 'createGroup'
  | 'updateGroup'
  | 'removeGroup'
  | 'listGroups'
  | 'readGroup'
  | 'readSubscriptions'
  | 'readGroupRecord'
  | 'createSubscription'
  | 'removeSubscription'
  | 'updateSubscription'
  | 'readQueueOffset'
  | 'addQueueOffset'
  | 'removeQueueOffset'
  | 'askRebalance'
  | 'raiseMeta'
  | 'finishRebalance'
  | 'listAwakeGroups'
  | 'sleepGroup'
  | 'moveQueue'
  | 'commitOffset'
  | 'resetOffset'
  | 'setStopped'
  | 'claimQueue'
  | 'renewClaim'
>

export function createGroups(database: Database, written: Records, durable: Records): GroupOperations {
  /** Changes a queue's record by hand, and tells the group. */
  const changeOffset = <T extends string>(
    { groupName, queueOffsetId }: QueuePlace,
    change: (current: QueueOffset) => QueueOffset,
    done: T,
  ): Promise<T | 'unknown_queue'> =>
    database.write(() => {
      const key = keys.queueOffset(groupName, queueOffsetId)
      const current = written.get<QueueOffset>(key)
      const group = written.get<Group>(keys.group(groupName))
      if (!current || !group) return 'unknown_queue'
      written.put(key, change(current))
      written.put(keys.group(groupName), raiseMeta(group))
      return done
    })

  const tellOfSubscription = (group: Group, kind: GroupKind) => {
    if (kind === 'group') askAndWake(written, raiseMeta(group))
    else written.put(keys.group(group.name), raiseMeta(group))
  }

  const isRemoved = (topicName: string) => written.get(keys.topicRemoval(topicName)) !== undefined

  return {
    createGroup: group =>
      database.write(() => {
        const { name, origin } = group
        if (written.get(keys.group(name))) return 'exists'
        if (origin) {
          if (!written.get(keys.group(origin.groupName))) return 'unknown_origin'
          written.put(keys.copy(origin.groupName, name), copyOf(name, origin))
        }
        written.put(keys.group(name), group)
        if (kindOf(group) === 'group') written.put(keys.name('group', name), {})
        return 'created'
      }),

    updateGroup: (groupName, settings) =>
      database.write(() => {
        const group = written.get<Group>(keys.group(groupName))
        if (!group) return 'unknown_group'
        askAndWake(written, raiseMeta({ ...group, ...settings }))
        return 'updated'
      }),

    removeGroup: ({ name, origin, version, rebalanceAsked }) =>
      database.write(() => {
        const group = written.get<Group>(keys.group(name))
        if (!group) return 'unknown_group'
        if (group.version !== version || group.rebalanceAsked !== rebalanceAsked) return 'conflict'
        written.delete(keys.group(name))
        if (origin) written.delete(keys.copy(origin.groupName, name))
        written.delete(keys.name('group', name))
        written.delete(keys.awake(name))
        return 'removed'
      }),

    listGroups: ({ after, limit }) =>
      database.read(() => durable.listKeys(keys.namesPartition('group'), after ?? '', limit)),

    readGroup: groupName =>
      database.read(() => {
        const records = durable.list<unknown>(keys.groupPartition(groupName))
        const group = records.find(record => record.sk === 'GROUP')?.doc as Group | undefined
        if (!group) return undefined
        const ofKind = (prefix: string) => records.filter(({ sk }) => sk.startsWith(prefix)).map(({ doc }) => doc)
        const members = ofKind('MEMBER#') as MemberRecord[]
        return {
          group,
          subscriptions: (ofKind('SUB#') as Subscription[]).map(withLimits),
          offsets: ofKind('OFFSET#') as QueueOffset[],
          members: members.filter(member => !member.isLost),
          lost: members.filter(member => member.isLost).map(member => member.consumerId),
          copies: ofKind('COPY#') as GroupCopy[],
        }
      }),

    readSubscriptions: groupName =>
      database.read(() =>
        durable
          .list<Subscription>(keys.groupPartition(groupName), subscriptionPrefix)
          .map(({ doc }) => withLimits(doc)),
      ),

    readGroupRecord: groupName => database.read(() => durable.get<Group>(keys.group(groupName))),

    createSubscription: (subscription, kind = 'group') =>
      database.write(() => {
        const { groupName, topicName } = subscription
        const group = written.get<Group>(keys.group(groupName))
        if (!group) return 'unknown_group'
        if (written.get(keys.subscription(groupName, topicName))) return 'exists'
        if (kind === 'group' && topicNamesOf(subscription).some(isRemoved)) return 'unknown_topic'
        written.put(keys.subscription(groupName, topicName), subscription)
        if (kind === 'group') {
          for (const name of topicNamesOf(subscription)) written.put(keys.subscriber(name, groupName), {})
        }
        tellOfSubscription(group, kind)
        return 'created'
      }),

    removeSubscription: (groupName, topicName, kind = 'group') =>
      database.write(() => {
        const group = written.get<Group>(keys.group(groupName))
        if (!group || !written.delete(keys.subscription(groupName, topicName))) return 'unknown_subscription'
        if (kind === 'group') {
          written.delete(keys.subscriber(topicName, groupName))
          written.delete(keys.subscriber(failTopicName(groupName, topicName), groupName))
        }
        tellOfSubscription(group, kind)
        return 'removed'
      }),

    updateSubscription: (groupName, topicName, change) =>
      database.write(() => {
        const key = keys.subscription(groupName, topicName)
        const group = written.get<Group>(keys.group(groupName))
        const subscription = written.get<Subscription>(key)
        if (!group || !subscription) return 'unknown_subscription'
        if (change.failTopicId !== undefined && isRemoved(failTopicName(groupName, topicName))) return 'unknown_topic'
        written.put(key, { ...subscription, ...change })
        if (change.failTopicId === undefined) {
          written.put(keys.group(groupName), raiseMeta(group))
        } else {
          written.put(keys.subscriber(failTopicName(groupName, topicName), groupName), {})
          askAndWake(written, raiseMeta(group))
        }
        return 'updated'
      }),

    readQueueOffset: ({ groupName, queueOffsetId }) =>
      database.read(() => durable.get<QueueOffset>(keys.queueOffset(groupName, queueOffsetId))),

    addQueueOffset: offset =>
      database.write(() => {
        const { groupName, queueId, queueOffsetId } = offset
        const key = keys.queueOffset(groupName, queueOffsetId)
        const ofQueue = keys.offsetOfQueue(groupName, queueId)
        if (!written.get(keys.group(groupName))) return 'unknown_group'
        if (written.get(ofQueue) || written.get(key)) return 'exists'
        written.put(ofQueue, {})
        written.put(key, offset)
        return 'created'
      }),

    removeQueueOffset: (offset, because) =>
      database.write(() => {
        const { groupName, topicName, queueId, queueOffsetId } = offset
        const reason =
          because === 'unsubscribed' ? keys.subscription(groupName, originOf(offset)) : keys.queue(topicName, queueId)
        if (written.get(reason)) return 'needed'
        // If it is gone, the group may have another place in the queue by now.
        if (written.delete(keys.queueOffset(groupName, queueOffsetId)))
          written.delete(keys.offsetOfQueue(groupName, queueId))
        return 'removed'
      }),

    askRebalance: groupName =>
      database.write(() => {
        const group = written.get<Group>(keys.group(groupName))
        return group && askAndWake(written, group)
      }),

    raiseMeta: groupName =>
      database.write(() => {
        const group = written.get<Group>(keys.group(groupName))
        if (!group) return undefined
        const raised = raiseMeta(group)
        written.put(keys.group(groupName), raised)
        return raised
      }),

    finishRebalance: done =>
      database.write(() => {
        const group = written.get<Group>(keys.group(done.groupName))
        const finished = group && finishRebalance(group, done)
        if (!finished) return 'conflict'
        written.put(keys.group(done.groupName), finished)
        return finished.rebalanceAsked > done.asked ? 'asked_again' : 'done'
      }),

    listAwakeGroups: () =>
      database.read(() =>
        durable
          .list<{ asked: number }>(keys.awakePartition)
          .map(({ sk, doc }) => ({ groupName: sk, asked: doc.asked })),
      ),

    sleepGroup: ({ groupName, asked }) =>
      database.write(() => {
        if (written.get<{ asked: number }>(keys.awake(groupName))?.asked === asked)
          written.delete(keys.awake(groupName))
      }),

    moveQueue: move =>
      database.write(() => {
        const key = keys.queueOffset(move.groupName, move.queueOffsetId)
        const offset = written.get<QueueOffset>(key)
        const group = written.get<Group>(keys.group(move.groupName))
        const moved = offset && group && afterMove(offset, group, move)
        if (!moved) return 'conflict'
        written.put(key, moved)
        return 'moved'
      }),

    resetOffset: (place, offset) => changeOffset(place, current => afterReset(current, offset), 'reset'),

    setStopped: (place, isStopped) => changeOffset(place, current => ({ ...current, isStopped }), 'set'),

    claimQueue: claim =>
      database.write(() => {
        const key = keys.queueOffset(claim.groupName, claim.queueOffsetId)
        const offset = afterClaim(written.get<QueueOffset>(key), claim)
        if (!offset) return { outcome: 'conflict' }
        written.put(key, offset)
        return { outcome: 'claimed', offset }
      }),

    renewClaim: renewal =>
      database.write(() => {
        const key = keys.queueOffset(renewal.groupName, renewal.queueOffsetId)
        const offset = afterRenewal(written.get<QueueOffset>(key), renewal)
        if (!offset) return { outcome: 'fenced' }
        written.put(key, offset)
        return { outcome: 'renewed', offset }
      }),

    commitOffset: commit =>
      database.write(() => {
        const key = keys.queueOffset(commit.groupName, commit.queueOffsetId)
        const current = written.get<QueueOffset>(key)
        const decided = decideCommit(current, commit)
        if (!current || decided.outcome === 'unknown_queue' || decided.outcome === 'fenced') return decided
        if (decided.outcome === 'unchanged' && !commit.release && commit.trialOffset === undefined) return decided
        if (decided.handedOver) {
          const group = written.get<Group>(keys.group(commit.groupName))
          if (!group) return { outcome: 'unknown_queue' }
          written.put(keys.group(commit.groupName), raiseAssignment(group, commit.nowMs))
        }
        written.put(key, afterCommit(current, commit, decided))
        return decided
      }),
  }
}

/**
 * Records that a group is owed a rebalance, and puts it among those that the tick looks at. The count only grows, so that
 * it also tells whether a group was asked something since the tick has read it.
 */
function askAndWake(written: Records, group: Group): Group {
  const asked = askRebalance(group)
  written.put(keys.group(group.name), asked)
  written.put(keys.awake(group.name), { asked: asked.rebalanceAsked })
  return asked
}

type Limits = 'maxLag' | 'maxLagSeconds'

/** A subscription of a version without limits of lag lacks them. */
const withLimits = (stored: Omit<Subscription, Limits> & Partial<Pick<Subscription, Limits>>): Subscription => ({
  maxLag: 0,
  maxLagSeconds: 0,
  ...stored,
})
