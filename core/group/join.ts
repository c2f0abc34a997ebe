import type { Core } from '../core.ts'
import type { Consumer, GroupSnapshot, Member } from '../model.ts'
import { leave } from './expire.ts'

export type JoinOutcome = 'joined' | 'replaced' | 'unknown_group' | 'unknown_consumer'

export type Joining = {
  groupName: string
  consumer: Consumer
  topicNames: string[]
  /** The place that it takes. */
  instanceId?: string | undefined
  /** It was given up, and comes back: a place that has been taken meanwhile it does not take back. */
  isReturning: boolean
}

/**
 * Lets a consumer join a group. With an `instanceId` it takes the place of the member that has the same one: that one is
 * let go, and its queues are the new one's at once, with a higher `offsetVersion`, so that nothing has to move and a former
 * process that still runs is fenced. Of two that start at the same moment the one that registered last stays.
 */
export async function joinGroup(core: Core, joining: Joining): Promise<JoinOutcome> {
  const { groupName, consumer, topicNames, instanceId } = joining
  const { consumerId } = consumer
  const member: Member = {
    groupName,
    consumerId,
    consumerName: consumer.name,
    ip: consumer.ip,
    topicNames,
    joinedAtMs: core.clock.now(),
  }
  if (instanceId === undefined) return core.store.joinGroup(member)

  // Another may join meanwhile: each looks again after it has joined, so one of two meets the other.
  for (let replaced: Member[] | undefined; ; ) {
    const snapshot = await core.store.readGroup(groupName)
    if (snapshot === undefined) return 'unknown_group'
    const rivals = rivalsOf(snapshot, consumerId, instanceId)
    const isTaken = joining.isReturning && !replaced && rivals.length > 0
    if (isTaken || rivals.some(rival => rival.consumerId > consumerId)) {
      await letGo(core, member)
      return 'replaced'
    }
    const before = new Set(replaced?.map(rival => rival.consumerId))
    if (replaced && rivals.every(rival => before.has(rival.consumerId))) {
      for (const rival of rivals) await letGo(core, rival)
      return 'joined'
    }
    const joinedAtMs = Math.min(member.joinedAtMs, ...rivals.map(rival => rival.joinedAtMs))
    const predecessors = predecessorsOf(snapshot, rivals)
    const outcome = await core.store.joinGroup({ ...member, instanceId, predecessors, joinedAtMs })
    if (outcome !== 'joined') return outcome
    replaced = rivals
  }
}

const rivalsOf = ({ members }: GroupSnapshot, consumerId: number, instanceId: string) =>
  members.filter(member => member.instanceId === instanceId && member.consumerId !== consumerId)

/** The rivals, and those that they have replaced so recently that queues are theirs still. */
function predecessorsOf({ offsets }: GroupSnapshot, rivals: Member[]): number[] {
  const owners = new Set(offsets.flatMap(({ consumerId, nextConsumerId = 0 }) => [consumerId, nextConsumerId]))
  const earlier = rivals.flatMap(({ predecessors = [] }) => predecessors).filter(id => owners.has(id))
  return [...new Set([...rivals.map(rival => rival.consumerId), ...earlier])]
}

async function letGo(core: Core, { consumerId, groupName }: Member): Promise<void> {
  const removed = await core.store.removeConsumer(consumerId)
  await leave(core, consumerId, removed?.groupNames ?? [groupName])
}
