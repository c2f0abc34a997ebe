import { limits } from '../../../core/protocol/limits.ts'
import { readHints } from '../notify/hints.ts'

/**
 * The queues of a group that an event says have messages; none where it says nothing of that. `for others`: it is a
 * notification of the service, and no queue of this group is in it.
 */
export function hintsFor(groupName: string, event: unknown): readonly number[] | 'for others' {
  const hints = readHints(event) ?? []
  if (hints.length === 0) return []
  const ours = hints.find(hint => hint.groupName === groupName)
  // Those that one request cannot name come with the claims that name none.
  return ours?.queueIds.slice(0, limits.maxNamesPerRequest) ?? 'for others'
}
