import type { AssignMember, Assignment, AssignQueue } from '../../core/group/assign.ts'

/** A group and who had its queues until now. */
export type Case = {
  members: readonly AssignMember[]
  queues: readonly AssignQueue[]
  current: ReadonlyMap<number, number>
}

/** What is to be least, what matters most first: squares of the members' counts, of those per topic, and moves. */
export type Score = readonly [counts: number, countsPerTopic: number, moves: number]

export const isLess = (a: Score, b: Score) => {
  const first = a.findIndex((value, i) => value !== b[i])
  return first >= 0 && Number(a[first]) < Number(b[first])
}

export const ableFor = ({ members }: Case, { topicName }: AssignQueue) => [
  ...new Set(members.filter(member => member.topicNames.includes(topicName)).map(member => member.consumerId)),
]

/** The score of an assignment. Throws if a queue has an owner that does not handle its topic, or none without need. */
export function scoreOf(group: Case, assignment: Assignment): Score {
  const counts = new Map(group.members.map(member => [member.consumerId, member.otherQueues ?? 0]))
  const countsPerTopic = new Map<string, number>()
  let moves = 0
  if (assignment.size !== group.queues.length) throw new Error('not as many queues as there are')
  for (const queue of group.queues) {
    const able = ableFor(group, queue)
    const owner = assignment.get(queue.queueId)
    if (owner === undefined || !(able.length === 0 ? owner === 0 : able.includes(owner))) {
      throw new Error(`queue ${queue.queueId} is not for ${owner}`)
    }
    if (owner === 0) continue
    const key = `${owner} ${queue.topicName}`
    counts.set(owner, (counts.get(owner) ?? 0) + 1)
    countsPerTopic.set(key, (countsPerTopic.get(key) ?? 0) + 1)
    const before = group.current.get(queue.queueId) ?? 0
    if (able.includes(before) && before !== owner) moves++
  }
  return [sumOfSquares(counts.values()), sumOfSquares(countsPerTopic.values()), moves]
}

const sumOfSquares = (counts: Iterable<number>) => [...counts].reduce((sum, count) => sum + count * count, 0)

/** The least score that any assignment has, by trying them all. */
export function bestScore(group: Case): Score {
  const choices = group.queues.map(queue => choicesFor(group, queue)).filter(choice => choice.length > 0)
  const counts = new Map(group.members.map(member => [`${member.consumerId}`, member.otherQueues ?? 0]))
  const others = sumOfSquares(counts.values())
  const countOf = (key: string) => counts.get(key) ?? 0
  let best: Score = [Number.POSITIVE_INFINITY, 0, 0]
  const place = (index: number, score: Score): void => {
    if (score[0] > best[0]) return
    if (index === choices.length && isLess(score, best)) best = score
    for (const { owner, share, moves } of choices[index] ?? []) {
      const has = countOf(owner)
      const hasOfTopic = countOf(share)
      counts.set(owner, has + 1).set(share, hasOfTopic + 1)
      place(index + 1, [score[0] + 2 * has + 1, score[1] + 2 * hasOfTopic + 1, score[2] + moves])
      counts.set(owner, has).set(share, hasOfTopic)
    }
  }
  place(0, [others, 0, 0])
  return best
}

function choicesFor(group: Case, queue: AssignQueue) {
  const able = ableFor(group, queue)
  const before = group.current.get(queue.queueId) ?? 0
  return able.map(owner => ({
    owner: `${owner}`,
    share: `${owner} ${queue.topicName}`,
    moves: able.includes(before) && owner !== before ? 1 : 0,
  }))
}

/**
 * Whether a better score is to be had, for groups too large to try all assignments. There is one exactly if queues can be
 * passed on along some chain or circle of members for less than nothing, by what each pass changes: Bellman and Ford's
 * search for a negative circle, with scores as lengths.
 */
export function canBeBetter(group: Case, assignment: Assignment): boolean {
  const passes = passesOf(group, assignment)
  const lengths = new Map<string, Score>()
  const lengthOf = (key: string) => lengths.get(key) ?? [0, 0, 0]
  const keyCount = new Set(passes.map(pass => pass.to)).size
  for (let round = 0; round <= keyCount; round++) {
    const shorter = passes.filter(({ from, to, change }) => {
      const length = lengthOf(from).map((value, i) => value + Number(change[i])) as unknown as Score
      const isShorter = isLess(length, lengthOf(to))
      if (isShorter) lengths.set(to, length)
      return isShorter
    })
    if (shorter.length === 0) return false
  }
  return true
}

type Pass = { from: string; to: string; change: Score }

/** One queue more or less, of a topic at a member, or of a member in all. */
function passesOf(group: Case, assignment: Assignment): Pass[] {
  const passes: Pass[] = []
  const topicNames = new Set(group.queues.map(queue => queue.topicName))
  for (const { consumerId, topicNames: handled, otherQueues = 0 } of group.members) {
    const member = `member ${consumerId}`
    const hasIt = ({ queueId }: AssignQueue) => assignment.get(queueId) === consumerId
    const hadIt = ({ queueId }: AssignQueue) => group.current.get(queueId) === consumerId
    const count = group.queues.filter(hasIt).length
    const inAll = count + otherQueues
    passes.push({ from: member, to: 'in all', change: [2 * inAll + 1, 0, 0] })
    if (count > 0) passes.push({ from: 'in all', to: member, change: [1 - 2 * inAll, 0, 0] })
    for (const topicName of topicNames) {
      if (!handled.includes(topicName)) continue
      const ofTopic = group.queues.filter(queue => queue.topicName === topicName)
      const has = ofTopic.filter(hasIt).length
      const had = ofTopic.filter(hadIt).length
      passes.push({ from: topicName, to: member, change: [0, 2 * has + 1, has < had ? -1 : 0] })
      if (has > 0) passes.push({ from: member, to: topicName, change: [0, 1 - 2 * has, has <= had ? 1 : 0] })
    }
  }
  return passes
}
