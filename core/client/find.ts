import type { Core } from '../core.ts'
import type { Group, GroupSnapshot, TopicSnapshot } from '../model.ts'
import { limits } from '../protocol/limits.ts'

/**
 * What the names in requests stand for. What nothing can be called is not looked for: clients may send any text, and a
 * store need not take it as a key.
 */
export const findTopic = async (core: Core, topicName: string): Promise<TopicSnapshot | undefined> =>
  isName(topicName) ? core.topics.get(topicName) : undefined

export const findGroup = async (core: Core, groupName: string): Promise<Group | undefined> =>
  isName(groupName) ? core.groups.get(groupName) : undefined

/**
 * A topic that has such a queue, or one to which a group subscribes: what this container remembers may be too old to know,
 * so it looks once more before it says no.
 */
export async function findTopicWith(
  core: Core,
  topicName: string,
  isThere: (topic: TopicSnapshot) => boolean,
): Promise<TopicSnapshot | undefined> {
  const remembered = await findTopic(core, topicName)
  if (remembered === undefined || isThere(remembered)) return remembered
  core.topics.forget(topicName)
  const fresh = await findTopic(core, topicName)
  return fresh && isThere(fresh) ? fresh : undefined
}

/** All of a group, as the store has it now. */
export const readGroup = async (core: Core, groupName: string): Promise<GroupSnapshot | undefined> =>
  isName(groupName) ? core.store.readGroup(groupName) : undefined

export const isName = (text: string): boolean => limits.anyNamePattern.test(text)
