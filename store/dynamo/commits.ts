import { decideCommit } from '../../core/group/commit.ts'
import { isOwnTrial } from '../../core/group/deaths.ts'
import type { QueueOffset } from '../../core/model.ts'
import { type Commit, type CommitOutcome, type RegistryStore, StoreError } from '../../core/store.ts'
import { keys } from '../keys.ts'
import { type Item, num } from './attributes.ts'
import { allOf, exists, expressions } from './expressions.ts'
import { itemKey, queueOffsetOf } from './items.ts'
import { assignmentRaise, claimNames, deathNames, offsetKey, type RegistryContext, trialNames } from './registry.ts'
import type { WriteAnswer } from './requests.ts'

/** Another writer may come between a read and the write that it decides; after this many times something else is wrong. */
const maxHandovers = 5

/** Progress of a queue's owner, and the end of his ownership. */
export function createCommits(context: RegistryContext): Pick<RegistryStore, 'commitOffset'> {
  const { requests, transactInTurn, registryTable: TableName } = context

  /** Progress of the owner, and with a release the end of his ownership, in one write. */
  function advance(commit: Commit): Promise<WriteAnswer> {
    const { offsetVersion, offset, release, nowMs } = commit
    const trial = trialParts(commit)
    const clauses = {
      ownerStillOwnsQueue: '#offsetVersion = :offsetVersion',
      offsetMovesForward: '#offset < :offset',
      ...(release && { queueStays: 'attribute_not_exists(#nextConsumerId)' }),
    }
    const removed = [deathNames, ...trial.remove, ...(release ? [claimNames] : [])].join(', ')
    const giveUp = release ? ' ADD #offsetVersion :one' : ''
    return requests.update('commitOffset', release ? 'once' : 'repeatable', {
      TableName,
      Key: offsetKey(commit),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...expressions(
        {
          UpdateExpression: `SET #offset = :offset, #committedAtMs = :nowMs${trial.set} REMOVE ${removed}${giveUp}`,
          ConditionExpression: allOf(clauses),
        },
        {
          ...trial.values,
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
      Key: offsetKey(commit),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...expressions(
        {
          UpdateExpression: `ADD #offsetVersion :one REMOVE ${[claimNames, ...ownTrial(commit, old)].join(', ')}`,
          ConditionExpression: allOf(clauses),
        },
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
    const over = isAhead ? [deathNames, trialNames] : ownTrial(commit, old)
    const removed = [claimNames, '#nextConsumerId, #leavingSinceMs', ...over].join(', ')
    const answer = await transactInTurn('commitOffset', 'once', commit.groupName, [
      {
        Update: {
          TableName,
          Key: offsetKey(commit),
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          ...expressions(
            {
              UpdateExpression: `SET #consumerId = :nextConsumerId${progress} ADD #offsetVersion :one REMOVE ${removed}`,
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

  /** What is on trial, where the offset stays. */
  function noteTrial(commit: Commit): Promise<WriteAnswer> {
    const clauses = { ownerStillOwnsQueue: '#offsetVersion = :offsetVersion' }
    const { set, remove, values } = trialParts(commit)
    const update = set ? `SET ${set.slice(2)}` : `REMOVE ${remove.join(', ')}`
    return requests.update('commitOffset', 'repeatable', {
      TableName,
      Key: offsetKey(commit),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      ...expressions(
        { UpdateExpression: update, ConditionExpression: allOf(clauses) },
        { ...values, offsetVersion: num(commit.offsetVersion) },
      ),
    })
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
    /**
     * 1 write unit, also if refused; a release may take 2, and one that hands over is a transaction of 2 items. What is
     * on trial takes 2 where the offset stays.
     */
    async commitOffset(commit: Commit): Promise<CommitOutcome> {
      if (commit.release) return release(commit)
      const advanced = await advance(commit)
      if (!advanced.refused) return decideAdvance(commit)
      const old = offsetOrNothing(advanced.old)
      const decided = decideCommit(old, commit)
      if (decided.outcome !== 'unchanged' || commit.trialOffset === undefined) return decided
      const noted = await noteTrial(commit)
      return noted.refused ? decideCommit(offsetOrNothing(noted.old), commit) : decided
    },
  }
}

const offsetOrNothing = (item: Item | undefined) => item && queueOffsetOf(item)

/** The parts of an update that say what is on trial; without a word of it, progress ends it. */
function trialParts({ trialOffset = 0, trialFailures = 0, offsetVersion, release }: Commit) {
  if (trialOffset === 0 || release) return { set: '', remove: [trialNames], values: {} }
  const values = {
    trialOffset: num(trialOffset),
    trialVersion: num(offsetVersion),
    trialFailures: num(trialFailures),
  }
  const set = Object.keys(values).map(name => `, #${name} = :${name}`)
  return { set: set.join(''), remove: [], values }
}

/** Who gives up has nothing on trial any more. */
const ownTrial = ({ offsetVersion }: Commit, { trial }: QueueOffset) =>
  isOwnTrial(trial, offsetVersion) ? [trialNames] : []

/** What the condition has proved: the version was the asked one, the offset below the asked one, the queue not leaving. */
const decideAdvance = ({ offset, offsetVersion, release }: Commit): CommitOutcome => ({
  outcome: 'advanced',
  offset,
  offsetVersion: release ? offsetVersion + 1 : offsetVersion,
  handedOver: false,
})
