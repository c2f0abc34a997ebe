import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type AssignMember, type AssignQueue, assignQueues } from '../../core/group/assign.ts'
import { seededRandom } from '../support/random.ts'
import { bestScore, type Case, canBeBetter, scoreOf } from './assign-judge.ts'

const gone = 99
const assign = ({ members, queues, current }: Case) => assignQueues(members, queues, current)

function assertBest(group: Case): void {
  assert.deepEqual(
    scoreOf(group, assign(group)),
    bestScore(group),
    JSON.stringify({ ...group, current: [...group.current] }),
  )
}

describe('an assignment is as even as can be, then as even per topic as can be, then with as few moves as can be', () => {
  test('for all groups of up to three members, two topics and four queues, whoever had the queues', () => {
    for (let memberCount = 1; memberCount <= 3; memberCount++) {
      for (let queueCount = 0; queueCount <= 4; queueCount++) {
        for (const group of allGroups(memberCount, queueCount)) assertBest(group)
      }
    }
  })

  test('for groups of up to four members, three topics and seven queues', () => {
    const random = seededRandom(1)
    for (let run = 0; run < 10_000; run++) assertBest(randomGroup(random, { members: 4, topics: 3, queues: 7 }))
  })

  test('for groups whose members have other queues beside, which count for what is even', () => {
    const random = seededRandom(4)
    for (let run = 0; run < 3_000; run++) assertBest(withOthers(random, { members: 4, topics: 3, queues: 7 }))
    for (let run = 0; run < 100; run++) {
      const group = withOthers(random, { members: 20, topics: 10, queues: 300 })
      assert.ok(!canBeBetter(group, assign(group)), `run ${run}`)
    }
  })

  test('for groups that members join and leave and queues are added to, each from what was assigned before', () => {
    const random = seededRandom(2)
    for (let walk = 0; walk < 300; walk++) {
      let group = randomGroup(random, { members: 4, topics: 3, queues: 6 })
      for (let step = 0; step < 10; step++) {
        assertBest(group)
        const { members, queues } = randomGroup(random, { members: 4, topics: 3, queues: 6 })
        const stay = group.members.filter(() => random() < 0.8)
        const join = members.filter(member => stay.every(other => other.consumerId !== member.consumerId))
        const current = assign(group)
        group =
          random() < 0.5
            ? { ...group, members: [...stay, ...join].slice(0, 4), current }
            : { ...group, queues, current }
      }
    }
  })

  test('for groups too large to try all, as nothing that could be passed on would be better', () => {
    const random = seededRandom(3)
    for (let run = 0; run < 500; run++) {
      const group = randomGroup(random, { members: 20, topics: 10, queues: 300 })
      assert.ok(!canBeBetter(group, assign(group)), `run ${run}`)
    }
  })
})

function* allGroups(memberCount: number, queueCount: number): Generator<Case> {
  for (const sets of tuples([['a'], ['b'], ['a', 'b']], memberCount)) {
    const members = sets.map((topicNames, i) => ({ consumerId: i + 1, topicNames }))
    const owners = tuples([0, gone, ...members.map(member => member.consumerId)], queueCount)
    for (let ofA = 0; ofA <= queueCount; ofA++) {
      const queues = Array.from({ length: queueCount }, (_, i) => ({ queueId: i + 1, topicName: i < ofA ? 'a' : 'b' }))
      for (const tuple of owners) yield { members, queues, current: new Map(tuple.map((owner, i) => [i + 1, owner])) }
    }
  }
}

function tuples<T>(values: readonly T[], length: number): T[][] {
  if (length === 0) return [[]]
  return tuples(values, length - 1).flatMap(rest => values.map(value => [...rest, value]))
}

function withOthers(random: () => number, most: { members: number; topics: number; queues: number }): Case {
  const group = randomGroup(random, most)
  const otherQueues = () => Math.floor((random() * most.queues) / 2)
  return { ...group, members: group.members.map(member => ({ ...member, otherQueues: otherQueues() })) }
}

/** Some topics have more queues than others, some members handle more topics, and some had more queues, than others. */
function randomGroup(random: () => number, most: { members: number; topics: number; queues: number }): Case {
  const low = (count: number) => Math.floor(random() * random() * count)
  const topicNames = Array.from({ length: most.topics }, (_, i) => `topic-${i}`)
  const zeal = 0.3 + 0.7 * random()
  const members: AssignMember[] = Array.from({ length: most.members - low(most.members) }, (_, i) => ({
    consumerId: i + 1,
    topicNames: topicNames.filter(() => random() < zeal),
  }))
  const queues: AssignQueue[] = Array.from({ length: most.queues - low(most.queues) }, (_, i) => ({
    queueId: i + 1,
    topicName: `topic-${low(most.topics)}`,
  }))
  const owned = queues.filter(() => random() < 0.8)
  const current = new Map(owned.map(queue => [queue.queueId, random() < 0.1 ? gone : 1 + low(members.length + 1)]))
  return { members, queues, current }
}
