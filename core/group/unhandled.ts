import type { GroupSnapshot } from '../model.ts'
import { selectMembers } from './members.ts'

/**
 * Topics that a group subscribes to and that none of those who may be given queues has a handler for: their messages wait.
 * In a group whose queues are claimed nobody says beforehand what they handle.
 */
export function unhandledTopics(snapshot: GroupSnapshot): string[] {
  const { group, subscriptions } = snapshot
  if (group.mode === 'claimed') return []
  const handled = new Set(selectMembers(snapshot).flatMap(member => member.topicNames))
  return subscriptions.map(({ topicName }) => topicName).filter(topicName => !handled.has(topicName))
}
