import type { Core } from '../core.ts'
import type { Consumer, GroupSnapshot, Member } from '../model.ts'
import { leave } from './expire.ts'

/** `replaced`: whose place was taken. They are to be let go, once the consumer has joined all of its groups. */
export type JoinOutcome =
  | { outcome: 'joined'; replaced: Member[] }
  | { outcome: 'outrun' | 'unknown_group' | 'unknown_consumer' }

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
 * Lets a consumer join a group. With an `instanceId` it takes the place of the member that has the same one: that one's
 * queues are the new one's at once, with a higher `offsetVersion`, so that nothing has to move and a former process that
 * still runs is fenced. Of two that start at the same moment the one that registered last stays; the other is `outrun`,
 * and is to be let go as well.
 */
export async function joinGroup(core: Core, joining: Joining): Promise<JoinOutcome> {
  const { groupName, consumer, topicNames, instanceId, isReturning } = joining
  const member: Member = {
    groupName,
    consumerId: consumer.consumerId,
    consumerName: consumer.name,
    ip: consumer.ip,
    topicNames,
    joinedAtMs: core.clock.now(),
  }
  if (instanceId !== undefined) return takePlace(core, { ...member, instanceId }, isReturning)
  const outcome = await core.store.joinGroup(member)
  return outcome === 'joined' ? { outcome, replaced: [] } : { outcome }
}

/**
 * Where somebody is at the place, a consumer first announces itself: as a member without `predecessors`, who is given
 * nothing. Then it looks again, and only if nobody of a higher id is there it confirms. So of two at least one has met the
 * other; who is outrun has been given nothing that others would not know of; and who was given something does not leave by
 * itself, but is met, and let go, by the one that comes after it.
 */
async function takePlace(
  core: Core,
  member: Member & { instanceId: string },
  isReturning: boolean,
): Promise<JoinOutcome> {
  const { consumerId, groupName } = member
  let written: 'nothing' | 'announcement' | 'confirmation' = 'nothing'
  let isGone = false
  for (;;) {
    const snapshot = await core.store.readGroup(groupName)
    if (snapshot === undefined) return { outcome: 'unknown_group' }
    const atPlace = snapshot.members.filter(({ instanceId }) => instanceId === member.instanceId)
    const own = atPlace.find(each => each.consumerId === consumerId)
    const rivals = atPlace.filter(each => each !== own)
    const living = await livingOf(core, rivals)
    const isTaken = isReturning && own === undefined && living.length > 0
    if (isTaken || living.some(rival => rival.consumerId > consumerId)) return { outcome: 'outrun' }
    if (isGone) return { outcome: 'unknown_consumer' }
    if (written === 'confirmation' && rivals.length === 0) return { outcome: 'joined', replaced: [] }

    const isKnown = own !== undefined
    const confirms = isKnown || rivals.length === 0
    const joinedAtMs = Math.min(member.joinedAtMs, ...rivals.map(rival => rival.joinedAtMs))
    const predecessors = confirms && { predecessors: predecessorsOf(snapshot, own, rivals) }
    const outcome = await core.store.joinGroup({ ...member, joinedAtMs, ...predecessors })
    // It was let go by another one that takes the place, or by whoever else: the next look tells.
    isGone = outcome === 'unknown_consumer'
    if (isKnown && !isGone) return { outcome: 'joined', replaced: rivals }
    written = confirms ? 'confirmation' : 'announcement'
  }
}

/** Who has been removed and is a member yet stands in nobody's way: it was given up, or was let go. */
async function livingOf({ store }: Core, members: Member[]): Promise<Member[]> {
  if (members.length === 0) return []
  const consumers = await store.readConsumers(members.map(member => member.consumerId))
  const known = new Set(consumers.map(consumer => consumer.consumerId))
  return members.filter(member => known.has(member.consumerId))
}

/** The rivals, and those whom they or the consumer itself have replaced so recently that queues are theirs still. */
function predecessorsOf({ offsets }: GroupSnapshot, own: Member | undefined, rivals: Member[]): number[] {
  const owners = new Set(offsets.flatMap(({ consumerId, nextConsumerId = 0 }) => [consumerId, nextConsumerId]))
  const earlier = [own, ...rivals].flatMap(member => member?.predecessors ?? []).filter(id => owners.has(id))
  return [...new Set([...rivals.map(rival => rival.consumerId), ...earlier])]
}

/** Forgets a consumer whose place is another one's, and takes it out of its groups; at least of the one named. */
export async function letGo(core: Core, consumerId: number, groupName: string, how: 'left' | 'lost'): Promise<void> {
  const removed = await core.store.removeConsumer(consumerId)
  await leave(core, consumerId, removed?.groupNames ?? [groupName], how)
}
