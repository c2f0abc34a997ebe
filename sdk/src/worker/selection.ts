import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { Message } from '../message.ts'

/** Says whether a message is for the handler; otherwise it counts as consumed. */
export type Selection = (message: Message) => boolean

/**
 * What of a queue is for the handler: messages of its tags, if it has some, and of a fail queue those that have not failed
 * too often yet; the others are dead letters, and stay in the topic for its retention. Undefined: everything.
 */
export function selectionOf({ tag, topicType, retryCount }: AssignedQueue): Selection | undefined {
  const tags = tag ? new Set(tag.split(',').filter(word => word !== '')) : undefined
  const isFailQueue = topicType === 2
  if (!tags && !isFailQueue) return undefined
  return message => (!tags || tags.has(message.tag)) && (!isFailQueue || message.retryCount < retryCount)
}
