import type { Core } from '../core.ts'
import { isClaimable, isLeftByDead } from '../group/claim.ts'
import { originOf } from '../group/fail-topics.ts'
import type { GroupSnapshot, QueueOffset, Subscription } from '../model.ts'
import type { ClaimRequest, ClaimResponse, RenewRequest, RenewResponse, RenewResult } from '../protocol/claims.ts'
import type { AssignedQueue } from '../protocol/membership.ts'
import { StoreError } from '../store.ts'
import { toAssignedQueue } from './assigned-queue.ts'
import { meetVersion } from './fencing.ts'
import { findGroup, readGroup } from './find.ts'

/** The end of a queue costs a read; so many are asked at once. */
const looksAtOnce = 10

/**
 * Claims queues of a group for a time: those of them that nobody holds and that have something to read. The claimant pulls
 * and commits like an owner, with the `offsetVersion` that it is told, renews while it works, and gives a queue up by its
 * final commit (`flag: 1`). A lease that ends is no more than a permission to others: who comes late is fenced only if
 * somebody has claimed the queue since. If the store fails on the way, the answer is what was claimed before that; a queue
 * whose claim is in doubt waits for the end of the lease, or for the claimant to say which ones it knows of.
 */
export async function claimQueues(core: Core, request: ClaimRequest): Promise<ClaimResponse> {
  const { consumerGroupName: groupName, leaseMs } = request
  const snapshot = await readGroup(core, groupName)
  if (snapshot === undefined) return { suc: false, msg: `consumergroup_${groupName}不存在` }
  const { mode, version } = snapshot.group
  if (mode !== 'claimed') {
    return { suc: false, msg: `group ${groupName} is ${mode}: its queues go to its members and cannot be claimed` }
  }
  const queues: NonNullable<ClaimResponse['queues']> = {}
  try {
    for await (const queue of claimSome(core, snapshot, request)) queues[queue.queueId] = queue
  } catch (error) {
    // What was claimed until then would wait for the end of its lease, if nobody heard of it.
    if (!(error instanceof StoreError) || Object.keys(queues).length === 0) throw error
  }
  return { suc: true, queues, leaseMs, version }
}

/** Claims queues one by one, until there are enough or no more. */
async function* claimSome(core: Core, snapshot: GroupSnapshot, request: ClaimRequest): AsyncGenerator<AssignedQueue> {
  const { consumerGroupName: groupName, claimant, leaseMs, maxQueues } = request
  let left = maxQueues
  for await (const [offset, subscription] of findWork(core, snapshot, request)) {
    const nowMs = core.clock.now()
    const outcome = await core.store.claimQueue({
      groupName,
      queueOffsetId: offset.queueOffsetId,
      expectedOffsetVersion: offset.offsetVersion,
      claimant,
      retakes: request.holdingQueueIds != null,
      ownerIsLost: isLeftByDead(offset, request.holdingQueueIds != null ? claimant : undefined),
      untilMs: nowMs + leaseMs,
      nowMs,
    })
    if (outcome.outcome === 'conflict') continue
    meetVersion(core, outcome.offset)
    yield toAssignedQueue(outcome.offset, subscription)
    if (--left === 0) return
  }
}

/** Queues that can be claimed and have something to read, from a random one on: claimants that come together part. */
async function* findWork(
  core: Core,
  { offsets, subscriptions }: GroupSnapshot,
  { topicNames, queueIds, exceptQueueIds, holdingQueueIds, claimant }: ClaimRequest,
): AsyncGenerator<[QueueOffset, Subscription]> {
  const byTopic = new Map(subscriptions.map(subscription => [subscription.topicName, subscription]))
  const excepted = new Set([...(exceptQueueIds ?? []), ...(holdingQueueIds ?? [])])
  const retaker = holdingQueueIds ? claimant : undefined
  const isWanted = (offset: QueueOffset) =>
    (topicNames?.includes(originOf(offset)) ?? true) &&
    (queueIds?.includes(offset.queueId) ?? true) &&
    !excepted.has(offset.queueId)
  const nowMs = core.clock.now()
  const free = offsets.filter(offset => isWanted(offset) && isClaimable(offset, nowMs, retaker))
  const start = Math.floor(core.random() * free.length)
  const inTurn = [...free.slice(start), ...free.slice(0, start)]
  for (let from = 0; from < inTurn.length; from += looksAtOnce) {
    const looked = inTurn.slice(from, from + looksAtOnce)
    const ends = await Promise.all(looked.map(({ topicName, queueId }) => core.findEnd(topicName, queueId)))
    for (const [i, offset] of looked.entries()) {
      const subscription = byTopic.get(originOf(offset))
      if (subscription && (ends[i] ?? 1) - 1 > offset.offset) yield [offset, subscription]
    }
  }
}

/** Prolongs claims; says which of them somebody else has by now, and which queues were stopped. */
export async function renewClaims(core: Core, request: RenewRequest): Promise<RenewResponse> {
  const { consumerGroupName: groupName, leaseMs, queues } = request
  const group = await findGroup(core, groupName)
  if (group === undefined) return { suc: false, msg: `consumergroup_${groupName}不存在` }
  const results = await Promise.all(
    queues.map(async ({ queueOffsetId, offsetVersion }): Promise<RenewResult> => {
      const untilMs = core.clock.now() + leaseMs
      const renewed = await core.store.renewClaim({ groupName, queueOffsetId, offsetVersion, untilMs })
      if (renewed.outcome === 'fenced') return { queueOffsetId, outcome: 'fenced' }
      return { queueOffsetId, outcome: 'renewed', stopFlag: renewed.offset.isStopped ? 1 : 0 }
    }),
  )
  return { suc: true, results, leaseMs, version: group.version }
}
