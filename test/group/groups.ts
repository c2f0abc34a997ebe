import assert from 'node:assert/strict'
import type { Core } from '../../core/core.ts'
import { topicNamesOf } from '../../core/group/fail-topics.ts'
import { headingFor } from '../../core/group/handover.ts'
import { planOwners } from '../../core/group/plan.ts'
import type { GroupSnapshot, QueueOffset } from '../../core/model.ts'
import type { Store } from '../../core/store.ts'
import { openDatabase } from '../../store/sqlite/database.ts'
import { createSqliteStore } from '../../store/sqlite/open.ts'
import type { Call } from '../core/scripted-store.ts'
import { consumerOf, groupOf, memberOf, offsetOf, queueOf, subscriptionOf, topicOf } from '../store/contract.ts'

export const groupName = 'billing'
export const topicName = 'orders'
export const nowMs = 1_000_000

/** A registry that can be taken back to what it was, for tests that play a scene many times. */
export type Registry = {
  store: Store
  /** What it holds, in one text. */
  dump(): string
  /** Remembers what it holds, for `reset`. */
  keep(): void
  reset(): void
  close(): Promise<void>
}

export function openRegistry(): Registry {
  const database = openDatabase(':memory:')
  const store = createSqliteStore(database)
  const all = database.writer.prepare('SELECT pk, sk, doc FROM registry ORDER BY pk, sk')
  const insert = database.writer.prepare('INSERT INTO registry (pk, sk, doc) VALUES (?, ?, ?)')
  let kept: unknown[][] = []
  const rows = () => all.all().map(({ pk, sk, doc }) => [pk, sk, doc])
  return {
    store,
    dump: () => JSON.stringify(rows()),
    keep() {
      kept = rows()
    },
    reset() {
      database.writer.exec('DELETE FROM registry')
      for (const [pk, sk, doc] of kept) insert.run(String(pk), String(sk), String(doc))
    },
    close: () => store.close(),
  }
}

/** A group of one topic whose consumers live. `owners`: who owns each queue, from queue 1 on. */
export async function makeGroup(store: Store, group: { owners: number[]; members: number[] }): Promise<void> {
  const queues = group.owners.map((_, i) => queueOf(topicName, i + 1))
  await store.createTopic(topicOf(topicName), queues)
  await store.createGroup(groupOf(groupName))
  await store.createSubscription(subscriptionOf(groupName, topicName))
  const firstId = await store.takeIds('queueOffset', group.owners.length)
  for (const [i, consumerId] of group.owners.entries()) {
    await store.addQueueOffset(
      offsetOf(groupName, firstId + i, { queueId: i + 1, offset: 10, consumerId, offsetVersion: 1, rbVersion: 1 }),
    )
  }
  const asked = (await store.readGroupRecord(groupName))?.rebalanceAsked ?? 0
  await store.finishRebalance({ groupName, asked, moved: true, expectedRbVersion: 0, nowMs })
  for (const consumerId of group.members) await join(store, consumerId)
}

/** Closes what is owed, so that who asks now is the first. */
export async function closeRebalance(store: Store): Promise<void> {
  const { rebalanceAsked: asked, rbVersion: expectedRbVersion } = (await read(store)).group
  await store.finishRebalance({ groupName, asked, moved: false, expectedRbVersion, nowMs })
}

/** As if a container had looked half a session time-out ago as well: it gives nobody up whom it meets silent once. */
export async function lookedBefore(core: Core, store: Store): Promise<Core> {
  const { members = [] } = (await store.readGroup(groupName)) ?? {}
  const beforeMs = core.clock.now() - core.settings.sessionTimeoutMs / 2
  for (const { consumerId, heartbeatAtMs } of await store.readConsumers(members.map(member => member.consumerId))) {
    core.silences.isOver(consumerId, heartbeatAtMs, beforeMs)
  }
  return core
}

/** Registers a consumer, and lets it join. */
export async function join(store: Store, consumerId: number, topicNames = [topicName]): Promise<void> {
  await store.registerConsumer(consumerOf(consumerId, `consumer-${consumerId}`, { heartbeatAtMs: nowMs }))
  await store.joinGroup({ ...memberOf(groupName, consumerId), topicNames })
  await store.askRebalance(groupName)
}

export async function read(store: Store): Promise<GroupSnapshot> {
  const snapshot = await store.readGroup(groupName)
  if (!snapshot) throw new Error(`there is no group ${groupName}`)
  return snapshot
}

/** Who owns each queue, or will when its present owner has released it. */
export const ownersOf = ({ offsets }: GroupSnapshot) => offsets.map(headingFor)

/** Nothing is owed, and every queue is where it belongs, or on its way: to a member that handles its topic, evenly. */
export function assertSettled(snapshot: GroupSnapshot): void {
  const { group, offsets } = snapshot
  assert.equal(group.rebalanceDone, group.rebalanceAsked, 'a rebalance is owed')
  const current = new Map(offsets.map(offset => [offset.queueId, headingFor(offset)]))
  assert.deepEqual(sorted(planOwners(snapshot, offsets)), sorted(current), 'the assignment is not what it should be')
  for (const offset of offsets) assert.ok(offset.rbVersion <= group.rbVersion, 'a queue is ahead of its group')
}

const sorted = (owners: Map<number, number>) => [...owners].toSorted(([a], [b]) => a - b)

/** It has a place in each queue of its topics and of their fail topics, and nowhere else. */
export async function assertPlaces(store: Store, { subscriptions, offsets }: GroupSnapshot): Promise<void> {
  const topics = await Promise.all(subscriptions.flatMap(topicNamesOf).map(name => store.readTopic(name)))
  const wanted = topics.flatMap(topic => topic?.queues ?? []).map(({ topicName, queueId }) => `${topicName} ${queueId}`)
  const found = offsets.map(({ topicName, queueId }) => `${topicName} ${queueId}`)
  assert.deepEqual(found.toSorted(), wanted.toSorted())
}

/**
 * Watches a store from beneath: no version falls, a queue changes its owner only with its `offsetVersion`, and its offset
 * stays. Knows whether consumers have been told of the last move, which is by a version that rose after it.
 */
export function watchGroup(store: Store) {
  const seen: { snapshot?: GroupSnapshot | undefined; isUntold: boolean } = { isUntold: false }
  return {
    seen,
    async watch(call: Call): Promise<unknown> {
      const before = seen.snapshot ?? (await store.readGroup(groupName))
      const answer = await call.run()
      const after = await store.readGroup(groupName)
      seen.snapshot = after
      if (!before || !after) return answer
      for (const name of ['rbVersion', 'metaVersion', 'version', 'rebalanceAsked', 'rebalanceDone'] as const) {
        assert.ok(after.group[name] >= before.group[name], `${name} fell`)
      }
      const hasMoved = after.offsets.map(offset => assertSuccessor(find(before, offset), offset)).some(moved => moved)
      if (after.group.version > before.group.version) seen.isUntold = false
      if (hasMoved) seen.isUntold = true
      return answer
    },
  }
}

const find = (snapshot: GroupSnapshot, { queueId }: QueueOffset) =>
  snapshot.offsets.find(offset => offset.queueId === queueId)

/** True: the queue has another owner, or is on its way to one. */
function assertSuccessor(before: QueueOffset | undefined, after: QueueOffset): boolean {
  if (!before) return after.consumerId !== 0
  assert.ok(after.offsetVersion >= before.offsetVersion, 'an offsetVersion fell')
  assert.ok(after.offset >= before.offset, 'an offset fell')
  const hasNewOwner = after.consumerId !== before.consumerId
  if (hasNewOwner) assert.ok(after.offsetVersion > before.offsetVersion, 'two owners have the same offsetVersion')
  return hasNewOwner || headingFor(after) !== headingFor(before)
}
