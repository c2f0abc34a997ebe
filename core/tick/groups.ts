import type { Core } from '../core.ts'
import { expireMembers } from '../group/expire.ts'
import { rebalance } from '../group/rebalance.ts'
import { unhandledTopics } from '../group/unhandled.ts'
import type { AwakeGroup } from '../store.ts'
import type { TickReport } from './report.ts'

/** Gives up a group's dead members, finishes what it owes, and lets it sleep when there is nothing to look after any more. */
export async function lookAfterGroup(core: Core, awake: AwakeGroup, report: TickReport): Promise<void> {
  const { groupName } = awake
  const before = await core.store.readGroup(groupName)
  if (before) await expireMembers(core, before)
  await rebalance(core, groupName)
  const after = await core.store.readGroup(groupName)
  const topicNames = after && after.members.length > 0 ? unhandledTopics(after) : []
  if (topicNames.length > 0) report.unhandled.push({ groupName, topicNames })
  const isQuiet = !after || (after.members.length === 0 && after.group.rebalanceDone >= after.group.rebalanceAsked)
  if (isQuiet) await core.store.sleepGroup(awake)
}
