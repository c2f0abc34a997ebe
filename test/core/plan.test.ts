import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { assignQueues } from '../../core/group/assign.ts'
import { failTopicName } from '../../core/group/fail-topics.ts'
import { planOwners } from '../../core/group/plan.ts'
import type { GroupSnapshot, QueueOffset } from '../../core/model.ts'
import { groupOf, memberOf, offsetOf, subscriptionOf } from '../store/contract.ts'

const topicNames = ['a', 'b', 'c']

/** A group that subscribes to topics with so many queues each, whose members handle some; each topic has two fail queues. */
function groupWith(queues: number[], handled: string[][], owners: number[] = []): GroupSnapshot {
  const names = queues.flatMap((count, i) => Array.from({ length: count }, () => topicNames[i] ?? ''))
  const failNames = queues.flatMap((_, i) => [topicNames[i] ?? '', topicNames[i] ?? ''])
  const offsets = [
    ...names.map(topicName => ({ topicName })),
    ...failNames.map(topicName => ({ topicName: failTopicName('g', topicName), originTopicName: topicName })),
  ].map((fields, i) => offsetOf('g', i + 1, { ...fields, consumerId: owners[i] ?? 0 }))
  return {
    group: groupOf('g'),
    subscriptions: queues.map((_, i) => ({ ...subscriptionOf('g', topicNames[i] ?? ''), failTopicId: 9 })),
    offsets,
    members: handled.map((names, i) => memberOf('g', i + 1, { topicNames: names })),
    lost: [],
    copies: [],
  }
}
const plan = (snapshot: GroupSnapshot) => planOwners(snapshot, snapshot.offsets)
const isOrdinary = (offset: QueueOffset) => offset.originTopicName === undefined

const anyGroup = fc
  .tuple(
    fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 }),
    fc.array(fc.subarray(topicNames), { maxLength: 5 }),
    fc.array(fc.nat(6), { maxLength: 20 }),
  )
  .map(([queues, handled, owners]) => groupWith(queues, handled, owners))

describe('who should own the queues of a group with fail topics', () => {
  test('is, for those of its topics, as if there were no fail topics', () => {
    fc.assert(
      fc.property(anyGroup, snapshot => {
        const owners = plan(snapshot)
        const current = new Map(snapshot.offsets.map(offset => [offset.queueId, offset.consumerId]))
        const alone = assignQueues(snapshot.members, snapshot.offsets.filter(isOrdinary), current)
        for (const [queueId, owner] of alone) assert.equal(owners.get(queueId), owner)
      }),
    )
  })

  test('is somebody who handles the topic whose failures a fail topic holds, if there is anybody', () => {
    fc.assert(
      fc.property(anyGroup, snapshot => {
        const owners = plan(snapshot)
        for (const { queueId, topicName, originTopicName = topicName } of snapshot.offsets) {
          const able = snapshot.members.filter(member => member.topicNames.includes(originTopicName))
          const owner = owners.get(queueId) ?? -1
          assert.ok(able.length === 0 ? owner === 0 : able.some(({ consumerId }) => consumerId === owner))
        }
      }),
    )
  })

  test('stays as it is when nothing has changed', () => {
    fc.assert(
      fc.property(anyGroup, snapshot => {
        const once = plan(snapshot)
        const offsets = snapshot.offsets.map(offset => ({ ...offset, consumerId: once.get(offset.queueId) ?? 0 }))
        assert.deepEqual(plan({ ...snapshot, offsets }), once)
      }),
    )
  })

  test('leaves nobody without a queue of a topic for the sake of fail topics, and evens out what they have in all', () => {
    const all = [topicNames, topicNames, topicNames]
    const owners = plan(groupWith([1, 1], all))
    assert.equal(new Set([owners.get(1), owners.get(2)]).size, 2)
    const counts = [1, 2, 3].map(id => [...owners.values()].filter(owner => owner === id).length)
    assert.deepEqual(counts, [2, 2, 2])
  })

  test('is nobody for what belongs to no subscription any more', () => {
    const snapshot = { ...groupWith([1], [['a']]), subscriptions: [] }
    assert.deepEqual([...plan(snapshot)], [])
  })
})
