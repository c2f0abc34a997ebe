import type { TransactWriteItem } from '@aws-sdk/client-dynamodb'
import { decideCommit } from '../../core/group/commit.ts'
import { originOf } from '../../core/group/fail-topics.ts'
import { isFencing } from '../../core/group/handover.ts'
import type { QueueOffset } from '../../core/model.ts'
import {
  type ClaimRenewal,
  type Commit,
  type CommitOutcome,
  type OffsetRemoval,
  type QueueClaim,
  type QueueMove,
  type QueuePlace,
  type RegistryStore,
  StoreError,
} from '../../core/store.ts'
import { keys } from '../keys.ts'
import { bool, type Item, num, str } from './attributes.ts'
import { allOf, exists, expressions, isNew } from './expressions.ts'
import { itemKey, itemOfQueueOffset, queueOffsetOf } from './items.ts'
import type { Operation } from './meter.ts'
import { assignmentRaise, type RegistryContext, raiseCounters } from './registry.ts'
import type { Effect, WriteAnswer } from './requests.ts'
import { createTurns } from './turns.ts'

type Offsets = Pick<
  RegistryStore,
  | 'readQueueOffset'
  | 'addQueueOffset'
  | 'removeQueueOffset'
  | 'moveQueue'
  | 'commitOffset'
  | 'resetOffset'
  | 'setStopped'
  | 'claimQueue'
  | 'renewClaim'
>

/** Another writer may come between a read and the write that it decides; after this many times something else is wrong. */
const maxHandovers = 5

/** A group's places in its queues: who owns each, and how far he is. */
export function createOffsets({ requests, registryTable: TableName }: RegistryContext): Offsets {
  const keyOf = ({ groupName, queueOffsetId }: QueuePlace) => itemKey(keys.queueOffset(groupName, queueOffsetId))
  const inTurn = createTurns()
  /** All of them have the group's record, or its subscription's, in common. */
  const transact = (operation: Operation, effect: Effect, groupName: string, items: TransactWriteItem[]) =>
    inTurn(groupName, () => requests.transact(operation, effect, items))

  /** Progress of the owner, and with a release the end of his ownership, in one write. */
  function advance(commit: Commit): Promise<WriteAnswer> {
    const { offsetVersion, offset, release, nowMs } = commit
    const clauses = {
      ownerStillOwnsQueue: '#offsetVersion = :offsetVersion',
      offsetMovesForward: '#offset < :offset',
      ...(release && { queueStays: 'attribute_not_exists(#nextConsumerId)' }),
    }
    const giveUp = release ? ` ADD #offsetVersion :one ${endClaim}` : ''
    return requests.update('commitOffset', release ? 'once' : 'repeatable', {
      TableName,
      Key: keyOf(commit),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...expressions(
        {
          UpdateExpression: `SET #offset = :offset, #committedAtMs = :nowMs${giveUp}`,
          ConditionExpression: allOf(clauses),
        },
        {
          offset: num(offset),
          offsetVersion: num(offsetVersion),
          nowMs: num(nowMs),
          ...(release && { one: num(1) }),
        },
      ),
    })
  }

  /** The end of an ownership whose offset is where it has to be. */
  function giveUp(commit: Commit, old: QueueOffset): Promise<WriteAnswer> {
    const clauses = {
      ownerStillOwnsQueue: '#offsetVersion = :offsetVersion',
      offsetIsAsRead: '#offset = :oldOffset',
      queueStays: 'attribute_not_exists(#nextConsumerId)',
    }
    return requests.update('commitOffset', 'once', {
      TableName,
      Key: keyOf(commit),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...expressions(
        { UpdateExpression: `ADD #offsetVersion :one ${endClaim}`, ConditionExpression: allOf(clauses) },
        { offsetVersion: num(commit.offsetVersion), oldOffset: num(old.offset), one: num(1) },
      ),
    })
  }

  /** The end of an ownership and the beginning of the next one, which the group's versions tell of in the same write. */
  async function handOver(
    commit: Commit,
    old: QueueOffset,
    nextConsumerId: number,
  ): Promise<'done' | Item | undefined> {
    const clauses = {
      ownerStillOwnsQueue: '#offsetVersion = :offsetVersion',
      offsetIsAsRead: '#offset = :oldOffset',
      queueLeavesForThem: '#nextConsumerId = :nextConsumerId',
    }
    const isAhead = commit.offset > old.offset
    const progress = isAhead ? ', #offset = :offset, #committedAtMs = :nowMs' : ''
    const answer = await transact('commitOffset', 'once', commit.groupName, [
      {
        Update: {
          TableName,
          Key: keyOf(commit),
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          ...expressions(
            {
              UpdateExpression: `SET #consumerId = :nextConsumerId${progress} ADD #offsetVersion :one ${endClaim}, #nextConsumerId, #leavingSinceMs`,
              ConditionExpression: allOf(clauses),
            },
            {
              ...(isAhead && { offset: num(commit.offset), nowMs: num(commit.nowMs) }),
              oldOffset: num(old.offset),
              offsetVersion: num(commit.offsetVersion),
              nextConsumerId: num(nextConsumerId),
              one: num(1),
            },
          ),
        },
      },
      {
        Update: {
          TableName,
          Key: itemKey(keys.group(commit.groupName)),
          ...expressions(
            { UpdateExpression: `SET ${assignmentRaise}`, ConditionExpression: exists },
            { nowMs: num(commit.nowMs), one: num(1) },
          ),
        },
      },
    ])
    return answer.refused ? answer.refusals[0]?.old : 'done'
  }

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
          Key: keyOf(place),
          ...expressions({ UpdateExpression, ConditionExpression: exists }, values),
        },
      },
      { Update: raiseCounters(TableName, place.groupName, ['metaVersion', 'version']) },
    ])
    return !answer.refused
  }

  async function release(commit: Commit): Promise<CommitOutcome> {
    let answer = await advance(commit)
    for (let handovers = 0; answer.refused; ) {
      const old = offsetOrNothing(answer.old)
      const decided = decideCommit(old, commit)
      if (old === undefined || decided.outcome === 'unknown_queue' || decided.outcome === 'fenced') return decided
      if (old.nextConsumerId === undefined) {
        answer = await (decided.outcome === 'advanced' ? advance(commit) : giveUp(commit, old))
        if (!answer.refused) return decided
      } else {
        const handed = await handOver(commit, old, old.nextConsumerId)
        if (handed === 'done') return decided
        answer = { refused: true, old: handed }
      }
      if (++handovers === maxHandovers)
        throw new StoreError('throttled', `queue offset ${commit.queueOffsetId} changes too fast`)
    }
    return decideAdvance(commit)
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
      return offsetOrNothing(items[0])
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
      const set = 'SET #rbVersion = :rbVersion, #consumerId = :consumerId'
      const leave = leaving
        ? ', #nextConsumerId = :next, #leavingSinceMs = :since'
        : ' REMOVE #nextConsumerId, #leavingSinceMs'
      const fence = isFencing(move) ? ' ADD #offsetVersion :one' : ''
      const updated = expressions(
        { UpdateExpression: `${set}${leave}${fence}`, ConditionExpression: allOf(clauses) },
        {
          consumerId: num(consumerId),
          rbVersion: num(rbVersion),
          expectedVersion: num(move.expectedOffsetVersion),
          expectedOwner: num(move.expectedConsumerId),
          ...(expectedNext !== undefined && { expectedNext: num(expectedNext) }),
          ...(leaving && { next: num(leaving.nextConsumerId), since: num(leaving.sinceMs) }),
          ...(fence && { one: num(1) }),
        },
      )
      const told = { nobodyToldSince: '#rbVersion = :toldVersion' }
      const untold = expressions({ ConditionExpression: allOf(told) }, { toldVersion: num(rbVersion - 1) })
      const answer = await transact('moveQueue', 'once', move.groupName, [
        { Update: { TableName, Key: keyOf(move), ...updated } },
        { ConditionCheck: { TableName, Key: itemKey(keys.group(move.groupName)), ...untold } },
      ])
      return answer.refused ? 'conflict' : 'moved'
    },

    /** A transaction of 2 items: 4 write units. A repeat raises the versions once more, which does no harm. */
    async resetOffset(place: QueuePlace, offset: number) {
      const update = `SET #offset = :offset ADD #offsetVersion :one ${endClaim}`
      const isKnown = await change('resetOffset', place, update, { offset: num(offset), one: num(1) })
      return isKnown ? 'reset' : 'unknown_queue'
    },

    /** The same. */
    async setStopped(place: QueuePlace, isStopped: boolean) {
      const isKnown = await change('setStopped', place, 'SET #isStopped = :isStopped', { isStopped: bool(isStopped) })
      return isKnown ? 'set' : 'unknown_queue'
    },

    /** 1 write unit, also if refused. */
    async claimQueue(claim: QueueClaim) {
      const { expectedOffsetVersion, claimant, untilMs, nowMs } = claim
      const clauses = {
        versionIsAsRead: '#offsetVersion = :expectedVersion',
        nobodyOwnsIt: '#consumerId = :nobody',
        isNotStopped: '#isStopped = :no',
        noLeaseRuns: '(attribute_not_exists(#claimedUntilMs) OR #claimedUntilMs <= :nowMs)',
      }
      const answer = await requests.update('claimQueue', 'once', {
        TableName,
        Key: keyOf(claim),
        ReturnValues: 'ALL_NEW',
        ...expressions(
          {
            UpdateExpression: 'SET #claimant = :claimant, #claimedUntilMs = :untilMs ADD #offsetVersion :one',
            ConditionExpression: allOf(clauses),
          },
          {
            claimant: str(claimant),
            untilMs: num(untilMs),
            one: num(1),
            expectedVersion: num(expectedOffsetVersion),
            nobody: num(0),
            no: bool(false),
            nowMs: num(nowMs),
          },
        ),
      })
      if (answer.refused || answer.item === undefined) return { outcome: 'conflict' }
      return { outcome: 'claimed', offset: queueOffsetOf(answer.item) }
    },

    /** 1 write unit, also if refused. */
    async renewClaim(renewal: ClaimRenewal) {
      const clauses = {
        nobodyElseClaimedIt: '#offsetVersion = :offsetVersion',
        isClaimed: 'attribute_exists(#claimant)',
      }
      const answer = await requests.update('renewClaim', 'repeatable', {
        TableName,
        Key: keyOf(renewal),
        ReturnValues: 'ALL_NEW',
        ...expressions(
          { UpdateExpression: 'SET #claimedUntilMs = :untilMs', ConditionExpression: allOf(clauses) },
          { untilMs: num(renewal.untilMs), offsetVersion: num(renewal.offsetVersion) },
        ),
      })
      if (answer.refused || answer.item === undefined) return { outcome: 'fenced' }
      return { outcome: 'renewed', offset: queueOffsetOf(answer.item) }
    },

    /** 1 write unit, also if refused; a release may take 2, and one that hands over is a transaction of 2 items. */
    async commitOffset(commit: Commit): Promise<CommitOutcome> {
      if (commit.release) return release(commit)
      const advanced = await advance(commit)
      return advanced.refused ? decideCommit(offsetOrNothing(advanced.old), commit) : decideAdvance(commit)
    },
  }
}

/** The part of an update that ends a claim, if there is one. */
const endClaim = 'REMOVE #claimant, #claimedUntilMs'

const offsetOrNothing = (item: Item | undefined) => item && queueOffsetOf(item)

/** What the condition has proved: the version was the asked one, the offset below the asked one, the queue not leaving. */
const decideAdvance = ({ offset, offsetVersion, release }: Commit): CommitOutcome => ({
  outcome: 'advanced',
  offset,
  offsetVersion: release ? offsetVersion + 1 : offsetVersion,
  handedOver: false,
})
