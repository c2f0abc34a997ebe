import type { Delivery, Target, TargetOwner, TargetRef } from './target.ts'

/** The part of the store port for targets, and for what was sent to them. */
export interface TargetStore {
  /** Creates a target, unless its owner has one of this name. */
  createTarget(target: Target): Promise<'created' | 'exists'>
  /**
   * Replaces a target by `next`, whose `revision` is the next one, if it is still of the revision before. `conflict` answers
   * with what is there; undefined: it was removed.
   */
  replaceTarget(next: Target): Promise<{ outcome: 'replaced' } | { outcome: 'conflict'; current: Target | undefined }>
  /** Removes a target. What was sent to it stays until its time is over. */
  removeTarget(ref: TargetRef): Promise<'removed' | 'unknown_target'>
  /** All targets of an owner by name, in one consistent read. */
  readTargets(owner: TargetOwner): Promise<Target[]>
  /** Names of the groups that have targets. */
  listGroupsWithTargets(): Promise<string[]>
  /** Notes at a topic that one of its groups has targets, or has none: `TopicSnapshot.notifies` names those that have. */
  setNotifies(topicName: string, groupName: string, notifies: boolean): Promise<'set' | 'unknown_subscriber'>
  /** Records what was sent; a repeat records it once. It is kept for `deliveriesKeptMs`, or longer. */
  addDelivery(ref: TargetRef, delivery: Delivery): Promise<void>
  /** What was sent to a target before a time, the newest first. */
  listDeliveries(ref: TargetRef, page: { beforeMs?: number; limit: number }): Promise<Delivery[]>
}
