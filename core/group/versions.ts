import type { Group } from '../model.ts'
import type { RebalanceDone } from '../store.ts'

/** How a group's counters move: the rules that every store keeps. Versions never fall. */

export function raiseMeta(group: Group): Group {
  return { ...group, metaVersion: group.metaVersion + 1, version: group.version + 1 }
}

export function askRebalance(group: Group): Group {
  return { ...group, rebalanceAsked: group.rebalanceAsked + 1 }
}

/** Undefined: a conflict. Another run has finished meanwhile, and what this one has read is no longer so. */
export function finishRebalance(group: Group, done: RebalanceDone): Group | undefined {
  if (group.rbVersion !== done.expectedRbVersion || group.rebalanceDone > done.asked) return undefined
  const closed = { ...group, rebalanceDone: done.asked }
  if (!done.moved) return closed
  return raiseAssignment(closed, done.nowMs)
}

/** Tells of a change of assignment. */
export function raiseAssignment(group: Group, nowMs: number): Group {
  const version = group.version + 1
  return { ...group, rbVersion: group.rbVersion + 1, version, rebalancedAtMs: nowMs, rebalancedVersion: version }
}
