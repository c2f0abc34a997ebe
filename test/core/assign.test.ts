import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type AssignMember, type Assignment, type AssignQueue, assignQueues } from '../../core/group/assign.ts'

const topicNames = ['a', 'b', 'c']

const membersOf = (topicSets: string[][]): AssignMember[] =>
  topicSets.map((topics, i) => ({ consumerId: i + 1, topicNames: topics }))
const queuesOf = (topics: string[]): AssignQueue[] => topics.map((topicName, i) => ({ queueId: i + 1, topicName }))
const ownedBy = (owners: number[]) => new Map(owners.map((owner, i) => [i + 1, owner]))
const countsOf = (assignment: Assignment, members: AssignMember[]) =>
  members.map(({ consumerId }) => [...assignment.values()].filter(owner => owner === consumerId).length)
const movesOf = (before: ReadonlyMap<number, number>, after: Assignment) =>
  [...after].filter(([queueId, owner]) => before.get(queueId) !== undefined && before.get(queueId) !== owner).length

const topicSet = fc.subarray(topicNames, { minLength: 1 })
const queues = fc.array(fc.constantFrom(...topicNames), { maxLength: 14 }).map(queuesOf)
const members = fc.array(topicSet, { maxLength: 5 }).map(membersOf)
/** Some of them never were members, or do not handle the topic; 0 is nobody. */
const current = fc.array(fc.nat(7), { maxLength: 14 }).map(ownedBy)

describe('the assignment of queues', () => {
  test('gives every queue to a member that handles its topic, and to nobody only if there is none', () => {
    fc.assert(
      fc.property(members, queues, current, (all, wanted, before) => {
        const assignment = assignQueues(all, wanted, before)
        assert.deepEqual(
          [...assignment.keys()],
          wanted.map(queue => queue.queueId),
        )
        for (const { queueId, topicName } of wanted) {
          const able = all.filter(member => member.topicNames.includes(topicName)).map(member => member.consumerId)
          const owner = assignment.get(queueId) ?? -1
          assert.ok(able.length === 0 ? owner === 0 : able.includes(owner))
        }
      }),
    )
  })

  test('differs by at most one in all and per topic where every member handles every topic', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), queues, current, (count, wanted, before) => {
        const all = membersOf(Array.from({ length: count }, () => topicNames))
        const assignment = assignQueues(all, wanted, before)
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
      fc.property(members, queues, current, (all, wanted, before) => {
        const once = assignQueues(all, wanted, before)
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

  test('gives each of a thousand members that join one after another its share of a thousand queues, and moves no more', () => {
    const wanted = queuesOf(Array.from({ length: 1000 }, () => 'a'))
    const all = membersOf(Array.from({ length: 1000 }, () => ['a']))
    let before = assignQueues(all.slice(0, 1), wanted, new Map())
    for (let count = 2; count <= 1000; count++) {
      const after = assignQueues(all.slice(0, count), wanted, before)
      assert.equal(movesOf(before, after), Math.floor(1000 / count))
      before = after
    }
    assert.deepEqual(new Set(countsOf(before, all)), new Set([1]))
  })

  test('does not depend on the order in which members, their topics, queues and owners are given', () => {
    const shuffled = <T>(values: readonly T[]) =>
      fc.shuffledSubarray([...values], { minLength: values.length, maxLength: values.length })
    const group = fc.tuple(members, queues, current)
    const twice = group.chain(([all, wanted, before]) =>
      fc.tuple(
        fc.constant(assignQueues(all, wanted, before)),
        fc
          .tuple(...all.map(member => shuffled(member.topicNames)))
          .chain(sets => shuffled(all.map((member, i) => ({ ...member, topicNames: sets[i] ?? [] })))),
        shuffled(wanted),
        shuffled([...before]),
      ),
    )
    fc.assert(
      fc.property(twice, ([one, all, wanted, before]) => {
        assert.deepEqual([...assignQueues(all, wanted, new Map(before))], [...one])
      }),
    )
  })

  test('takes what is named twice as named once', () => {
    fc.assert(
      fc.property(members, queues, current, (all, wanted, before) => {
        const parts = all.flatMap(({ consumerId, topicNames: [first = 'a', ...rest] }) => [
          { consumerId, topicNames: [first, first] },
          { consumerId, topicNames: [...rest, first, ...rest] },
        ])
        assert.deepEqual(assignQueues(parts, [...wanted, ...wanted], before), assignQueues(all, wanted, before))
      }),
    )
  })

  test('gives nothing to a former owner that is no member, or does not handle the topic', () => {
    const wanted = queuesOf(['a', 'a', 'b', 'b'])
    const all = membersOf([['a', 'z'], ['b']])
    assert.deepEqual(assignQueues(all, wanted, ownedBy([7, 2, 1, 7])), ownedBy([1, 1, 2, 2]))
  })

  test('gives all queues to nobody where there is no member, and nothing where there is no queue', () => {
    assert.deepEqual(assignQueues([], queuesOf(['a', 'b']), ownedBy([1, 2])), ownedBy([0, 0]))
    assert.deepEqual(assignQueues(membersOf([['a'], []]), [], ownedBy([1, 2])), new Map())
  })
})
