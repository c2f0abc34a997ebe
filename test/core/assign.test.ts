import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type AssignMember, type Assignment, type AssignQueue, assignQueues } from '../../core/group/assign.ts'

const topicNames = ['a', 'b', 'c']

const membersOf = (topicSets: string[][]): AssignMember[] =>
  topicSets.map((topics, i) => ({ consumerId: i + 1, topicNames: topics }))
const queuesOf = (topics: string[]): AssignQueue[] => topics.map((topicName, i) => ({ queueId: i + 1, topicName }))
const countsOf = (assignment: Assignment, members: AssignMember[]) =>
  members.map(({ consumerId }) => [...assignment.values()].filter(owner => owner === consumerId).length)
const movesOf = (before: ReadonlyMap<number, number>, after: Assignment) =>
  [...after].filter(([queueId, owner]) => before.get(queueId) !== undefined && before.get(queueId) !== owner).length

const topicSet = fc.subarray(topicNames, { minLength: 1 })
const queues = fc.array(fc.constantFrom(...topicNames), { maxLength: 14 }).map(queuesOf)
const members = fc.array(topicSet, { maxLength: 5 }).map(membersOf)

/** The most even counts that any assignment can have, by trying all: the smallest sum of squares. */
function bestSumOfSquares(all: AssignMember[], wanted: AssignQueue[]): number {
  const counts = new Map(all.map(member => [member.consumerId, 0]))
  const place = (index: number): number => {
    const queue = wanted[index]
    if (!queue) return [...counts.values()].reduce((sum, count) => sum + count * count, 0)
    const able = all.filter(member => member.topicNames.includes(queue.topicName))
    if (able.length === 0) return place(index + 1)
    let best = Number.POSITIVE_INFINITY
    for (const { consumerId } of able) {
      counts.set(consumerId, (counts.get(consumerId) ?? 0) + 1)
      best = Math.min(best, place(index + 1))
      counts.set(consumerId, (counts.get(consumerId) ?? 0) - 1)
    }
    return best
  }
  return place(0)
}

describe('the assignment of queues', () => {
  test('gives every queue to a member that handles its topic, and to nobody only if there is none', () => {
    fc.assert(
      fc.property(members, queues, (all, wanted) => {
        const assignment = assignQueues(all, wanted, new Map())
        assert.deepEqual(
          [...assignment.keys()].sort((a, b) => a - b),
          wanted.map(queue => queue.queueId),
        )
        for (const { queueId, topicName } of wanted) {
          const able = all.filter(member => member.topicNames.includes(topicName)).map(member => member.consumerId)
          const owner = assignment.get(queueId) ?? 0
          assert.ok(able.length === 0 ? owner === 0 : able.includes(owner))
        }
      }),
    )
  })

  test('is as even as the topics that each member handles allow', () => {
    const smallQueues = fc.array(fc.constantFrom(...topicNames), { maxLength: 7 }).map(queuesOf)
    const smallMembers = fc.array(topicSet, { minLength: 1, maxLength: 3 }).map(membersOf)
    fc.assert(
      fc.property(smallMembers, smallQueues, fc.array(fc.integer({ min: 1, max: 3 })), (all, wanted, owners) => {
        const current = new Map(owners.map((owner, i) => [i + 1, owner]))
        const counts = countsOf(assignQueues(all, wanted, current), all)
        assert.equal(
          counts.reduce((sum, count) => sum + count * count, 0),
          bestSumOfSquares(all, wanted),
        )
      }),
    )
  })

  test('differs by at most one in all and per topic where every member handles every topic', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), queues, (count, wanted) => {
        const all = membersOf(Array.from({ length: count }, () => topicNames))
        const assignment = assignQueues(all, wanted, new Map())
        const spread = (of: AssignQueue[]) => {
          const counts = all.map(m => of.filter(queue => assignment.get(queue.queueId) === m.consumerId).length)
          return Math.max(...counts) - Math.min(...counts)
        }
        assert.ok(spread(wanted) <= 1)
        for (const topicName of topicNames)
          assert.ok(spread(wanted.filter(queue => queue.topicName === topicName)) <= 1)
      }),
    )
  })

  test('changes nothing when nothing has changed', () => {
    fc.assert(
      fc.property(members, queues, (all, wanted) => {
        const once = assignQueues(all, wanted, new Map())
        assert.deepEqual(assignQueues(all, wanted, once), once)
      }),
    )
  })

  test('moves only what fairness takes away when a member joins', () => {
    const wanted = queuesOf(Array.from({ length: 12 }, () => 'a'))
    const three = membersOf([['a'], ['a'], ['a']])
    const four = membersOf([['a'], ['a'], ['a'], ['a']])
    const before = assignQueues(three, wanted, new Map())
    const after = assignQueues(four, wanted, before)
    assert.equal(movesOf(before, after), 3)
    assert.deepEqual(countsOf(after, four), [3, 3, 3, 3])
  })

  test('moves only the queues of the member that left', () => {
    const wanted = queuesOf(Array.from({ length: 12 }, () => 'a'))
    const four = membersOf([['a'], ['a'], ['a'], ['a']])
    const before = assignQueues(four, wanted, new Map())
    const after = assignQueues(four.slice(0, 3), wanted, before)
    assert.equal(movesOf(before, after), 3)
    assert.deepEqual(countsOf(after, four), [4, 4, 4, 0])
  })

  test('does not depend on the order in which members and queues are given', () => {
    fc.assert(
      fc.property(members, queues, (all, wanted) => {
        const one = assignQueues(all, wanted, new Map())
        const other = assignQueues(all.toReversed(), wanted.toReversed(), new Map())
        assert.deepEqual(new Map([...other].sort(([a], [b]) => a - b)), one)
      }),
    )
  })
})
