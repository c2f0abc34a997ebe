import type { GroupSnapshot, QueueOffset } from '../model.ts'
import { type Assignment, assignQueues } from './assign.ts'
import { originOf } from './fail-topics.ts'
import { headingFor } from './handover.ts'
import { replacedMembers, selectMembers } from './members.ts'

/**
 * Who should own a group's queues: those of its topics as if there were no others, and then those of its fail topics, of
 * which there are many and in which little happens, so that each member has as many as any other. Who handles a topic also
 * handles what failed of it.
 */
export function planOwners(snapshot: GroupSnapshot, offsets: readonly QueueOffset[]): Assignment {
  const subscribed = new Set(snapshot.subscriptions.map(subscription => subscription.topicName))
  const queues = offsets
    .map(offset => ({ queueId: offset.queueId, topicName: originOf(offset), isOfFailTopic: isOfFailTopic(offset) }))
    .filter(({ topicName }) => subscribed.has(topicName))
  const successors = replacedMembers(snapshot.members)
  const current = new Map(
    offsets.map(offset => [offset.queueId, successors.get(headingFor(offset)) ?? headingFor(offset)]),
  )
  const members = selectMembers(snapshot)
  const [first, then] = [false, true].map(wanted => queues.filter(queue => queue.isOfFailTopic === wanted))
  const assigned = assignQueues(members, first ?? [], current)
  const counts = new Map<number, number>()
  for (const owner of assigned.values()) counts.set(owner, (counts.get(owner) ?? 0) + 1)
  const loaded = members.map(member => ({ ...member, otherQueues: counts.get(member.consumerId) ?? 0 }))
  return new Map([...assigned, ...assignQueues(loaded, then ?? [], current)])
}

const isOfFailTopic = ({ originTopicName }: QueueOffset) => originTopicName !== undefined
