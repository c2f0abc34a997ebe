import type { Core } from '../core.ts'

/**
 * Asks for a rebalance of a group. Only who asks first says so on the bus: a run goes on until nothing is asked any more,
 * so a thousand that join at once are one event. An event that is lost, or whose run dies, costs time only: the next
 * heartbeat of a member finds that a rebalance is owed, or the tick. False: there is no such group.
 */
export async function askRebalance(core: Core, groupName: string): Promise<boolean> {
  const group = await core.store.askRebalance(groupName)
  if (group === undefined) return false
  if (group.rebalanceAsked - group.rebalanceDone === 1) await core.bus.groupChanged(groupName)
  return true
}
