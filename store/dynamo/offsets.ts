import { decideCommit } from '../../core/group/commit.ts'
import type { QueueOffset } from '../../core/model.ts'
import type { Commit, CommitOutcome, QueueMove, RegistryStore } from '../../core/store.ts'
import { keys } from '../keys.ts'
import { type Item, num } from './attributes.ts'
import { allOf, expressions, isNew } from './expressions.ts'
import { itemKey, itemOfQueueOffset, queueOffsetOf } from './items.ts'
import type { RegistryContext } from './registry.ts'
import type { WriteAnswer } from './requests.ts'

type Offsets = Pick<RegistryStore, 'addQueueOffset' | 'moveQueue' | 'commitOffset'>

/** A group's places in its queues: who owns each, and how far he is. */
export function createOffsets({ requests, registryTable: TableName }: RegistryContext): Offsets {
  /** Progress of the owner, and with a release the end of his ownership, in one write. */
  function advance({ groupName, queueOffsetId, offsetVersion, offset, release }: Commit): Promise<WriteAnswer> {
    const clauses = { ownerStillOwnsQueue: '#offsetVersion = :offsetVersion', offsetMovesForward: '#offset < :offset' }
    const raise = release ? ' ADD #offsetVersion :one' : ''
    return requests.update('commitOffset', release ? 'once' : 'repeatable', {
      TableName,
      Key: itemKey(keys.queueOffset(groupName, queueOffsetId)),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...expressions(
        { UpdateExpression: `SET #offset = :offset${raise}`, ConditionExpression: allOf(clauses) },
        { offset: num(offset), offsetVersion: num(offsetVersion), ...(release && { one: num(1) }) },
      ),
    })
  }

  /** The end of an ownership whose offset is where it has to be. */
  function giveUp({ groupName, queueOffsetId, offsetVersion }: Commit): Promise<WriteAnswer> {
    const clauses = { ownerStillOwnsQueue: '#offsetVersion = :offsetVersion' }
    return requests.update('commitOffset', 'once', {
      TableName,
      Key: itemKey(keys.queueOffset(groupName, queueOffsetId)),
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...expressions(
        { UpdateExpression: 'ADD #offsetVersion :one', ConditionExpression: allOf(clauses) },
        { offsetVersion: num(offsetVersion), one: num(1) },
      ),
    })
  }

  return {
    /** A transaction of 2 items: 4 write units. */
    async addQueueOffset(offset: QueueOffset) {
      const ofQueue = {
        ...itemKey(keys.offsetOfQueue(offset.groupName, offset.queueId)),
        queueOffsetId: num(offset.queueOffsetId),
      }
      const condition = expressions({ ConditionExpression: isNew })
      const answer = await requests.transact('addQueueOffset', 'once', [
        { Put: { TableName, Item: ofQueue, ...condition } },
        { Put: { TableName, Item: itemOfQueueOffset(offset), ...condition } },
      ])
      return answer.refused ? 'exists' : 'created'
    },

    /** 1 write unit. */
    async moveQueue({ groupName, queueOffsetId, expectedOffsetVersion, consumerId, rbVersion }: QueueMove) {
      const clauses = { ownerIsAsRead: '#offsetVersion = :expected' }
      const answer = await requests.update('moveQueue', 'once', {
        TableName,
        Key: itemKey(keys.queueOffset(groupName, queueOffsetId)),
        ...expressions(
          {
            UpdateExpression: 'SET #consumerId = :consumerId, #rbVersion = :rbVersion ADD #offsetVersion :one',
            ConditionExpression: allOf(clauses),
          },
          { consumerId: num(consumerId), rbVersion: num(rbVersion), expected: num(expectedOffsetVersion), one: num(1) },
        ),
      })
      return answer.refused ? 'conflict' : 'moved'
    },

    /** 1 write unit, also if refused; 2 for a release that brings no progress. Nothing is read first. */
    async commitOffset(commit: Commit): Promise<CommitOutcome> {
      const advanced = await advance(commit)
      if (!advanced.refused) return decideAdvance(commit)
      const outcome = decideCommit(offsetOrNothing(advanced.old), commit)
      if (outcome.outcome !== 'unchanged' || !commit.release) return outcome

      const given = await giveUp(commit)
      if (given.refused) return decideCommit(offsetOrNothing(given.old), commit)
      if (given.item === undefined) return outcome
      const { offset, offsetVersion } = queueOffsetOf(given.item)
      return { outcome: 'unchanged', offset, offsetVersion }
    },
  }
}

const offsetOrNothing = (item: Item | undefined) => item && queueOffsetOf(item)

/** What the condition has proved: the version was the asked one, and the offset below the asked one. */
const decideAdvance = ({ offset, offsetVersion, release }: Commit): CommitOutcome => ({
  outcome: 'advanced',
  offset,
  offsetVersion: release ? offsetVersion + 1 : offsetVersion,
})
