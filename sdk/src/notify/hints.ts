import { limits } from '../../../core/protocol/limits.ts'

/** Says that these queues have messages for a group. Only a hint: twice does no harm, and none is needed. */
export type NotifyHint = { readonly groupName: string; readonly queueIds: readonly number[] }

/**
 * Reads PMQ's push hint, one entry for each group; undefined if it is not one.
 *
 * `{"msgNotifyDtos":[{"queueId":11,"consumerGroupName":"billing"}]}`
 */
export function readHints(parsed: unknown): NotifyHint[] | undefined {
  const { msgNotifyDtos } = (parsed ?? {}) as { msgNotifyDtos?: unknown }
  if (!Array.isArray(msgNotifyDtos)) return undefined
  const queueIdsOf = new Map<string, Set<number>>()
  for (const entry of msgNotifyDtos) {
    const { queueId, consumerGroupName } = (entry ?? {}) as { queueId?: unknown; consumerGroupName?: unknown }
    if (typeof consumerGroupName !== 'string' || !limits.anyNamePattern.test(consumerGroupName)) return undefined
    if (!Number.isSafeInteger(queueId) || (queueId as number) < 1) return undefined
    const queueIds = queueIdsOf.get(consumerGroupName) ?? new Set()
    queueIdsOf.set(consumerGroupName, queueIds.add(queueId as number))
  }
  return Array.from(queueIdsOf, ([groupName, queueIds]) => ({ groupName, queueIds: [...queueIds] }))
}
