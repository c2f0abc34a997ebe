import type { TransactWriteItem } from '@aws-sdk/client-dynamodb'
import type { QueuePlace } from '../../core/store.ts'
import { keys } from '../keys.ts'
import { num } from './attributes.ts'
import { exists, expressions, isNew } from './expressions.ts'
import { itemKey } from './items.ts'
import type { Operation } from './meter.ts'
import type { Effect, Requests, TransactionAnswer } from './requests.ts'
import { createTurns } from './turns.ts'

export type RegistryContext = {
  requests: Requests
  /** For what has a group's record, or its subscription's, in common: one after the other within this container. */
  transactInTurn: (
    operation: Operation,
    effect: Effect,
    groupName: string,
    items: TransactWriteItem[],
  ) => Promise<TransactionAnswer>
  registryTable: string
  random: () => number
}

/** Makes what the registry's operations have in common. */
export function createRegistryContext(
  requests: Requests,
  registryTable: string,
  random: () => number,
): RegistryContext {
  const inTurn = createTurns()
  return {
    requests,
    transactInTurn: (operation, effect, groupName, items) =>
      inTurn(groupName, () => requests.transact(operation, effect, items)),
    registryTable,
    random,
  }
}

export const offsetKey = ({ groupName, queueOffsetId }: QueuePlace) =>
  itemKey(keys.queueOffset(groupName, queueOffsetId))

/** What an update removes to end a claim, if there is one; likewise what an owner has on trial, and the count of deaths. */
export const claimNames = '#claimant, #claimedUntilMs'
export const trialNames = '#trialOffset, #trialVersion, #trialFailures'
export const deathNames = '#deaths, #deathVersion'

/** The parts of an update that count the death of an owner, whose version is the one that the update expects. */
export const deathParts = (ownerIsLost: boolean | undefined) =>
  ownerIsLost ? { set: ', #deathVersion = :expectedVersion', add: ['#deaths :one'] } : { set: '', add: [] }

/** A check in a transaction that adds something to a topic: that it is not being removed, and was not. */
export const notBeingRemoved = (TableName: string, topicName: string) => ({
  TableName,
  Key: itemKey(keys.topicRemoval(topicName)),
  ...expressions({ ConditionExpression: isNew }),
})

export type GroupCounter = 'rbVersion' | 'metaVersion' | 'version' | 'rebalanceAsked'

/** Raises counters of a group that must exist (an update alone would create one). */
export function raiseCounters(registryTable: string, groupName: string, counters: GroupCounter[]) {
  return {
    TableName: registryTable,
    Key: itemKey(keys.group(groupName)),
    ...expressions(
      { UpdateExpression: `ADD ${counters.map(each => `#${each} :one`).join(', ')}`, ConditionExpression: exists },
      { one: num(1) },
    ),
  }
}

/** The part of an update that tells of a change of assignment; its values are `:nowMs` and `:one`. */
export const assignmentRaise =
  '#rebalancedAtMs = :nowMs, #rebalancedVersion = #version + :one ADD #rbVersion :one, #version :one'

/**
 * Wakes a group for the tick, in the transaction that asks something of it. `asked` is a random number and no counter:
 * the item goes when the group sleeps, and a count that began again would let a slow tick, which read the old item,
 * put the group to sleep over what the new one asks. It is blind, so waking never meets a condition.
 */
export function wake({ registryTable: TableName, random }: RegistryContext, groupName: string) {
  const asked = Math.floor(random() * Number.MAX_SAFE_INTEGER)
  return { Put: { TableName, Item: { ...itemKey(keys.awake(groupName)), asked: num(asked) } } }
}
