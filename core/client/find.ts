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

/** All of a group, as the store has it now. */
export const readGroup = async (core: Core, groupName: string): Promise<GroupSnapshot | undefined> =>
  isName(groupName) ? core.store.readGroup(groupName) : undefined

export const isName = (text: string): boolean => limits.anyNamePattern.test(text)
