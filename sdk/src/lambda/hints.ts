import { limits } from '../../../core/protocol/limits.ts'

/**
 * The queues of a group that an event says have messages; none where it says nothing of that. `for others`: it is a
 * notification of the service, and no queue of this group is in it.
 */
export function readHints(event: unknown, groupName: string): readonly number[] | 'for others' {
  const { msgNotifyDtos } = (event ?? {}) as { msgNotifyDtos?: unknown }
  if (!Array.isArray(msgNotifyDtos) || msgNotifyDtos.length === 0) return []
  const ours = msgNotifyDtos.filter(hint => hint?.consumerGroupName === groupName)
  if (ours.length === 0) return 'for others'
  const queueIds = ours.map(({ queueId }) => queueId).filter(queueId => Number.isSafeInteger(queueId) && queueId > 0)
  // More than one request may name come with the claims that name none.
  return [...new Set<number>(queueIds)].slice(0, limits.maxNamesPerRequest)
}
