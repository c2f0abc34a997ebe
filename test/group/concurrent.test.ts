import { describe, test } from 'node:test'
import type { Store } from '../../core/store.ts'
import { consumerOf, memberOf, queueOf } from '../store/contract.ts'
import { exploreGroup, type GroupScene } from './concurrent.ts'
import { groupName, makeGroup, nowMs, topicName } from './groups.ts'

type Change = GroupScene['changes'][number]

const nothing: Change = async () => {}
const joins =
  (consumerId: number): Change =>
  async store => {
    await store.joinGroup({ ...memberOf(groupName, consumerId), topicNames: [topicName] })
    await store.askRebalance(groupName)
  }
const leaves =
  (consumerId: number): Change =>
  async store => {
    await store.leaveGroup(groupName, consumerId)
    await store.askRebalance(groupName)
  }
const getsAQueue: Change = async store => {
  await store.addQueues(topicName, [queueOf(topicName, 50)])
  await store.askRebalance(groupName)
}

/** A group, and consumers 1 to 4, of which some are members. */
const group = (owners: number[], members: number[]) => async (store: Store) => {
  await makeGroup(store, { owners, members })
  for (const consumerId of [1, 2, 3, 4]) {
    await store.registerConsumer(consumerOf(consumerId, `consumer-${consumerId}`, { heartbeatAtMs: nowMs }))
  }
}

const scenes: Record<string, GroupScene> = {
  'two rebalances of what was asked before': { before: group([1, 1, 1], [1, 2]), changes: [nothing, nothing] },
  'a rebalance for a member that leaves meanwhile': { before: group([1, 1, 1], [1, 2]), changes: [nothing, leaves(2)] },
  'two members that join': { before: group([1, 1, 1], [1]), changes: [joins(2), joins(3)] },
  'two members that leave': { before: group([1, 2, 3], [1, 2, 3]), changes: [leaves(2), leaves(3)] },
  'the last members that leave': { before: group([1, 2], [1, 2]), changes: [leaves(1), leaves(2)] },
  'a member that is replaced': { before: group([1, 2], [1, 2]), changes: [leaves(1), joins(3)] },
  'a member that joins while the topic gets a queue': { before: group([1, 1], [1]), changes: [getsAQueue, joins(2)] },
}

describe('a group whose changes and rebalances happen in any order', () => {
  for (const [name, scene] of Object.entries(scenes)) {
    test(`ends with every queue at its place, and all told: ${name}`, async t => {
      const { plays, ends } = await exploreGroup(scene)
      t.diagnostic(`${plays} plays, ${ends} ends`)
    })
  }

  const small: Record<string, GroupScene> = {
    'two rebalances of what was asked before': { before: group([1, 1], [1, 2]), changes: [nothing, nothing] },
    'a member that leaves': { before: group([1], [1, 3]), changes: [leaves(1)] },
  }
  for (const [name, scene] of Object.entries(small)) {
    test(`does so also where one operation or its answer is lost: ${name}`, async t => {
      const { plays, ends } = await exploreGroup({ ...scene, failures: 1 })
      t.diagnostic(`${plays} plays, ${ends} ends`)
    })
  }
})
