import type { Group, GroupCopy, Origin } from '../model.ts'
import type { GroupKind } from '../store.ts'

/** What PMQ's clients say that have no sub-environment. */
export const noSubEnv = 'default'

/** PMQ's name for a group's copy in a sub-environment. */
export const subEnvCopyName = (groupName: string, subEnv: string) => `${groupName}_${subEnv.toLowerCase()}`

/** The name of a broadcast group's copy for one consumer: no group that is made by hand can have it. */
export const consumerCopyName = (groupName: string, consumerId: number) => `${groupName}~${consumerId}`

export const kindOf = ({ origin }: Pick<Group, 'origin'>): GroupKind =>
  origin && 'consumerId' in origin ? 'consumer_copy' : 'group'

/**
 * Whether the places in a group's queues are its own. The members of a broadcast group have theirs in their copies of it,
 * which are broadcast groups as well: nobody shares their queues out.
 */
export const hasOwnOffsets = (group: Pick<Group, 'mode' | 'origin'>): boolean =>
  group.mode !== 'broadcast' || kindOf(group) === 'consumer_copy'

export function copyOf(copyName: string, origin: Origin): GroupCopy {
  return 'consumerId' in origin ? { copyName, consumerId: origin.consumerId } : { copyName, subEnv: origin.subEnv }
}
