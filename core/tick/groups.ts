import type { Core } from '../core.ts'
import { expireMembers } from '../group/expire.ts'
import { isRebalanceOwed, rebalance } from '../group/rebalance.ts'
import { unhandledTopics } from '../group/unhandled.ts'
import type { GroupSnapshot } from '../model.ts'
import type { AwakeGroup } from '../store.ts'
import type { TickReport } from './report.ts'
import type { Turns } from './turns.ts'

/** Looks after the groups that have members, or owe a rebalance. The others sleep, and cost nothing here. */
export async function lookAfterGroups(core: Core, report: TickReport, turns: Turns): Promise<void> {
  const awake = new Map((await core.store.listAwakeGroups()).map(group => [group.groupName, group]))
  await turns.each([...awake.keys()], 'group', async groupName => {
    report.groups++
    const group = awake.get(groupName)
    if (group) await lookAfterGroup(core, group, report)
  })
}

/** Gives up a group's dead members, finishes what it owes, and lets it sleep when there is nothing to look after any more. */
async function lookAfterGroup(core: Core, awake: AwakeGroup, report: TickReport): Promise<void> {
  const { groupName } = awake
  const snapshot = await bringInOrder(core, groupName)
  const topicNames = snapshot && snapshot.members.length > 0 ? unhandledTopics(snapshot) : []
  if (topicNames.length > 0) report.unhandled.push({ groupName, topicNames })
  const { members = [], group } = snapshot ?? {}
  const isQuiet = !group || (members.length === 0 && group.rebalanceDone >= group.rebalanceAsked)
  // Unless it was asked for something since it was listed.
  if (isQuiet) await core.store.sleepGroup(awake)
}

/** Where nothing is to be done, which is nearly always, a group is read once. */
async function bringInOrder(core: Core, groupName: string): Promise<GroupSnapshot | undefined> {
  const snapshot = await core.store.readGroup(groupName)
  const hasChanged = snapshot && (await expireMembers(core, snapshot))
  if (snapshot && !hasChanged && !isRebalanceOwed(core, snapshot)) return snapshot
  await rebalance(core, groupName)
  return core.store.readGroup(groupName)
}
