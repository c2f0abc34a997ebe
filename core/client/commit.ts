import { type Core, groupHasChanged } from '../core.ts'
import type { CommitEntry, CommitRequest, CommitResponse, CommitResult } from '../protocol/commit.ts'
import { isName, readGroup } from './find.ts'
import { groupVersions } from './group-versions.ts'

/** Records how far queues are consumed; with `flag: 1` also that their consumer has stopped them. */
export async function commitOffset(core: Core, request: CommitRequest): Promise<CommitResponse> {
  const entries = request.queueOffsets ?? []
  const release = request.flag === 1
  const results = await Promise.all(entries.map(entry => commitOne(core, entry, release)))
  const groupNames = new Set(entries.map(entry => entry.consumerGroupName).filter(isName))
  if (release) {
    for (const groupName of groupNames) {
      await core.store.raiseMeta(groupName)
      groupHasChanged(core, groupName)
    }
  }
  return { suc: true, results, versions: await groupVersions(core, groupNames) }
}

async function commitOne(core: Core, entry: CommitEntry, release: boolean): Promise<CommitResult> {
  const { queueOffsetId, offsetVersion, consumerGroupName: groupName } = entry
  if (!isName(groupName)) return { queueOffsetId, outcome: 'unknown_queue' }
  const offset = entry.offset <= believableOffset ? entry.offset : await withinLog(core, entry)
  const nowMs = core.clock.now()
  const outcome = await core.store.commitOffset({ groupName, queueOffsetId, offsetVersion, offset, release, nowMs })
  return { queueOffsetId, ...outcome }
}

/**
 * An offset that hardly any log ever reaches. Whoever commits a greater one is wrong, and must not spoil the queue for
 * the others: a log whose batches are all gone goes on behind what was committed, up to where numbers end. To look at
 * the log is a read that other commits need not pay for.
 */
const believableOffset = 2 ** 40

async function withinLog(core: Core, { consumerGroupName, queueOffsetId, offset }: CommitEntry): Promise<number> {
  const group = await readGroup(core, consumerGroupName)
  const place = group?.offsets.find(place => place.queueOffsetId === queueOffsetId)
  if (place === undefined) return offset
  return Math.min(offset, (await core.findEnd(place.topicName, place.queueId)) - 1)
}
