import { type Core, groupHasChanged } from '../core.ts'
import type { CommitEntry, CommitRequest, CommitResponse, CommitResult } from '../protocol/commit.ts'

/** Records how far queues are consumed; with `flag: 1` also that their consumer has stopped them. */
export async function commitOffset(core: Core, request: CommitRequest): Promise<CommitResponse> {
  const entries = request.queueOffsets ?? []
  const release = request.flag === 1
  const results = await Promise.all(entries.map(entry => commitOne(core, entry, release)))
  const groupNames = new Set(entries.map(entry => entry.consumerGroupName))
  if (release) {
    for (const groupName of groupNames) {
      await core.store.raiseMeta(groupName)
      groupHasChanged(core, groupName)
    }
  }
  const versions: Record<string, number> = {}
  for (const groupName of groupNames) {
    const group = await core.groups.get(groupName)
    if (group) versions[groupName] = group.version
  }
  return { suc: true, results, versions }
}

async function commitOne(core: Core, entry: CommitEntry, release: boolean): Promise<CommitResult> {
  const { queueOffsetId, offsetVersion, offset, consumerGroupName: groupName } = entry
  const outcome = await core.store.commitOffset({ groupName, queueOffsetId, offsetVersion, offset, release })
  return { queueOffsetId, ...outcome }
}
