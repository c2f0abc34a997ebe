import { type Core, groupHasChanged, type QueueName } from '../core.ts'
import type { CommitEntry, CommitRequest, CommitResponse, CommitResult } from '../protocol/commit.ts'
import { meetVersion } from './fencing.ts'
import { isName, readGroup } from './find.ts'
import { groupVersions } from './group-versions.ts'

/** Records how far queues are consumed; with `flag: 1` also that their consumer has stopped them. */
export async function commitOffset(core: Core, request: CommitRequest): Promise<CommitResponse> {
  const entries = request.queueOffsets ?? []
  const release = request.flag === 1
  const committed = await Promise.all(entries.map(entry => commitOne(core, entry, release)))
  const results = committed.map(({ result }) => result)
  const groupNames = new Set(entries.map(entry => entry.consumerGroupName).filter(isName))
  if (release) {
    // A queue that was handed over has raised the versions already; one that stays has another offsetVersion now. What was
    // refused has changed nothing.
    const staying = new Set(entries.filter((_, i) => committed[i]?.stays).map(entry => entry.consumerGroupName))
    for (const groupName of groupNames) {
      if (staying.has(groupName)) await core.store.raiseMeta(groupName)
      groupHasChanged(core, groupName)
    }
  }
  return { suc: true, results, versions: await groupVersions(core, groupNames) }
}

/** `stays`: the commit counted, and the queue is still its owner's. */
type Committed = { result: CommitResult; stays: boolean }

async function commitOne(core: Core, entry: CommitEntry, release: boolean): Promise<Committed> {
  const { queueOffsetId, offsetVersion, consumerGroupName: groupName } = entry
  if (!isName(groupName)) return { result: { queueOffsetId, outcome: 'unknown_queue' }, stays: false }
  const offset = await withinLog(core, entry)
  const nowMs = core.clock.now()
  const { trialOffset, trialFailures } = entry
  const trial = trialOffset != null && !release && { trialOffset, trialFailures: trialFailures ?? 0 }
  const commit = { groupName, queueOffsetId, offsetVersion, offset, release, ...trial, nowMs }
  const outcome = await core.store.commitOffset(commit)
  if ('offsetVersion' in outcome) {
    meetVersion(core, { groupName, queueOffsetId, offsetVersion: outcome.offsetVersion })
  }
  if (!('handedOver' in outcome)) return { result: { queueOffsetId, ...outcome }, stays: false }
  const { handedOver, ...told } = outcome
  return { result: { queueOffsetId, ...told }, stays: !handedOver }
}

/**
 * The asked offset, or where the log ends: nobody has handled what is not there yet. Whoever commits a greater one is
 * wrong, and must not take messages from the group, or offsets from everybody (a log whose batches are all gone goes on
 * behind what was committed). A container that has not met the offset itself reads the end of the log: half a read unit
 * beside the write unit of the commit.
 */
async function withinLog(core: Core, { consumerGroupName, queueOffsetId, offset }: CommitEntry): Promise<number> {
  const place = await findPlace(core, consumerGroupName, queueOffsetId)
  if (place === undefined || core.reader.hasMet(place.queueId, offset)) return offset
  return Math.min(offset, (await core.findEnd(place.topicName, place.queueId)) - 1)
}

/** The queue that a queue offset stands for, which never changes. */
async function findPlace(core: Core, groupName: string, queueOffsetId: number): Promise<QueueName | undefined> {
  const keyOf = (id: number) => `${id} ${groupName}`
  const known = core.queueNames.get(keyOf(queueOffsetId))
  if (known !== undefined) return known
  for (const offset of (await readGroup(core, groupName))?.offsets ?? []) {
    core.queueNames.set(keyOf(offset.queueOffsetId), { topicName: offset.topicName, queueId: offset.queueId })
  }
  return core.queueNames.get(keyOf(queueOffsetId))
}
