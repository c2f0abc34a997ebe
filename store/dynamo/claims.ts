import type { ClaimRenewal, QueueClaim, RegistryStore } from '../../core/store.ts'
import { bool, num, str } from './attributes.ts'
import { allOf, expressions } from './expressions.ts'
import { queueOffsetOf } from './items.ts'
import { deathParts, offsetKey, type RegistryContext } from './registry.ts'

/** Queues that are held by a lease. */
export function createClaims(context: RegistryContext): Pick<RegistryStore, 'claimQueue' | 'renewClaim'> {
  const { requests, registryTable: TableName } = context
  return {
    /** 1 write unit, also if refused. */
    async claimQueue(claim: QueueClaim) {
      const { expectedOffsetVersion, claimant, retakes, untilMs, nowMs } = claim
      const death = deathParts(claim.ownerIsLost)
      const count = ['#offsetVersion :one', ...death.add].join(', ')
      const orOwn = retakes ? ' OR #claimant = :claimant' : ''
      const clauses = {
        versionIsAsRead: '#offsetVersion = :expectedVersion',
        nobodyOwnsIt: '#consumerId = :nobody',
        isNotStopped: '#isStopped = :no',
        noLeaseRuns: `(attribute_not_exists(#claimedUntilMs) OR #claimedUntilMs <= :nowMs${orOwn})`,
      }
      const answer = await requests.update('claimQueue', 'once', {
        TableName,
        Key: offsetKey(claim),
        ReturnValues: 'ALL_NEW',
        ...expressions(
          {
            UpdateExpression: `SET #claimant = :claimant, #claimedUntilMs = :untilMs${death.set} ADD ${count}`,
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
        Key: offsetKey(renewal),
        ReturnValues: 'ALL_NEW',
        ...expressions(
          { UpdateExpression: 'SET #claimedUntilMs = :untilMs', ConditionExpression: allOf(clauses) },
          { untilMs: num(renewal.untilMs), offsetVersion: num(renewal.offsetVersion) },
        ),
      })
      if (answer.refused || answer.item === undefined) return { outcome: 'fenced' }
      return { outcome: 'renewed', offset: queueOffsetOf(answer.item) }
    },
  }
}
