import { keys } from '../keys.ts'
import { num } from './attributes.ts'
import { exists, expressions } from './expressions.ts'
import { itemKey } from './items.ts'
import type { Requests } from './requests.ts'

export type RegistryContext = { requests: Requests; registryTable: string; random: () => number }

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
