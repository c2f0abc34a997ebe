import type { Core } from '../core.ts'
import type { FailuresRequest } from '../protocol/failures.ts'
import type { QueuePlace } from '../store.ts'

/** What a consumer says of a queue that it works on: under which place and version it has it. */
type Claimed = Pick<FailuresRequest, 'consumerGroupName' | 'queueOffsetId' | 'offsetVersion'>

const keyOf = ({ groupName, queueOffsetId }: QueuePlace) => `${queueOffsetId} ${groupName}`

/** Takes note of an `offsetVersion` that a queue has, or had. */
export function meetVersion(core: Core, place: QueuePlace & { offsetVersion: number }): void {
  const key = keyOf(place)
  const known = core.offsetVersions.get(key) ?? 0
  if (place.offsetVersion > known) core.offsetVersions.set(key, place.offsetVersion)
}

/**
 * Whether this container knows that a consumer has lost a queue, without asking the store: versions never fall, so whoever
 * presents a lower one than was met is fenced for certain. One that is not known to be is found out by its next commit.
 */
export function isKnownFenced(core: Core, { consumerGroupName, queueOffsetId, offsetVersion }: Claimed): boolean {
  if (consumerGroupName == null || queueOffsetId == null || offsetVersion == null) return false
  const known = core.offsetVersions.get(keyOf({ groupName: consumerGroupName, queueOffsetId }))
  return known !== undefined && offsetVersion < known
}
