import { connect, costOfMore, createJunction, gainOfLess, type Junction, type Link, reroute } from './assign-flow.ts'

/**
 * Who gets which queues, by these rules, each as far as those before it allow:
 *
 * 1. A queue has an owner if any member handles its topic.
 * 2. Fair: the members' counts are as even as the topics that each handles allow (the sum of their squares is least).
 * 3. Fair per topic: so are the counts of each member per topic (the sum of all their squares is least).
 * 4. Sticky: as few queues as possible are taken away from a member that could keep them.
 *
 * What is least is exactly so, not nearly. The same input, in whatever order, gives the same answer; and an answer given
 * as `current` is left as it is: else a rebalance would be owed for ever.
 *
 * Queues of a topic differ only in who had them, so counts are settled first: as units that flow from topics through
 * members to one sink, where each rule from 2 on is a cost that is convex (`assign-flow.ts`).
 */
export function assignQueues(
  members: readonly AssignMember[],
  queues: readonly AssignQueue[],
  current: ReadonlyMap<number, number>,
): Assignment {
  const { topics, junctions } = createBoard(members, queues)
  for (const topic of topics) takeHome(topic, current)
  while (topics.filter(shiftStraight).length > 0) {}
  reroute(junctions)
  return new Map(topics.flatMap(topic => handOut(topic, current)).sort(([a], [b]) => a - b))
}

export type AssignMember = {
  consumerId: number
  topicNames: readonly string[]
  /** How many it has that are not to be shared out here, and count for what is fair. Absent: none. */
  otherQueues?: number
}
export type AssignQueue = { queueId: number; topicName: string }
/** Queue → owner; 0: nobody may take it. */
export type Assignment = Map<number, number>

/** `total`: how many queues the member has, as the flow from it to the sink. */
type Seat = { consumerId: number; topicNames: ReadonlySet<string>; junction: Junction; total: Link }
/** How many queues of a topic a member has, as the flow to it; `home`: how many it had. */
type Share = Link & { seat: Seat }
/** `shares`: by `consumerId`, of the members that handle the topic. */
type Topic = { queues: AssignQueue[]; junction: Junction; shares: Map<number, Share>; unplaced: number }

function createBoard(members: readonly AssignMember[], queues: readonly AssignQueue[]) {
  const unique = [...new Map(queues.map(queue => [queue.queueId, queue])).values()]
  const byTopic = Map.groupBy(
    unique.sort((a, b) => a.queueId - b.queueId),
    queue => queue.topicName,
  )
  const weights = weigh(byTopic.size, unique.length)
  const sink = createJunction()
  const seats = seatMembers(members, sink, weights.total)
  const topics = [...byTopic].map(([name, ofTopic]) => openTopic(name, ofTopic, seats, weights.perTopic))
  return { topics, junctions: [sink, ...seats.map(seat => seat.junction), ...topics.map(topic => topic.junction)] }
}

/**
 * A rule outweighs all that follow. A circle passes each topic once: there it makes or saves one move at most, and
 * changes the sum of squares by twice the topic's queues and 2 at most; if that sum changes at all, it does by 2 at least.
 * Prices stay exact (below 2^53) up to a million queues of a thousand topics.
 */
function weigh(topicCount: number, queueCount: number) {
  const perTopic = topicCount + 1
  return { perTopic, total: 2 * perTopic * (queueCount + topicCount + 1) }
}

function seatMembers(members: readonly AssignMember[], sink: Junction, weight: number): Seat[] {
  const byId = [...Map.groupBy(members, member => member.consumerId)].sort(([a], [b]) => a - b)
  return byId.map(([consumerId, same]) => {
    const junction = createJunction()
    const total = connect({ from: junction, to: sink, flow: same[0]?.otherQueues ?? 0, home: 0, weight })
    return { consumerId, topicNames: new Set(same.flatMap(member => member.topicNames)), junction, total }
  })
}

function openTopic(topicName: string, queues: AssignQueue[], seats: Seat[], weight: number): Topic {
  const junction = createJunction()
  const shares = new Map<number, Share>()
  for (const seat of seats) {
    if (!seat.topicNames.has(topicName)) continue
    shares.set(seat.consumerId, connect({ from: junction, to: seat.junction, flow: 0, home: 0, weight, seat }))
  }
  return { queues, junction, shares, unplaced: shares.size > 0 ? queues.length : 0 }
}

const homeOf = (topic: Topic, { queueId }: AssignQueue, current: ReadonlyMap<number, number>) =>
  topic.shares.get(current.get(queueId) ?? 0)

function takeHome(topic: Topic, current: ReadonlyMap<number, number>): void {
  for (const queue of topic.queues) {
    const share = homeOf(topic, queue, current)
    if (!share) continue
    share.home++
    give(topic, share, 1)
  }
}

function give(topic: Topic, share: Share, count: 1 | -1): void {
  share.flow += count
  share.seat.total.flow += count
  topic.unplaced -= count
}

/**
 * Places what has no owner, and shifts queues straight from one member to another while that is better. Rerouting does
 * the rest, and could do the shifts too, but not as fast where much has changed.
 */
function shiftStraight(topic: Topic): boolean {
  const shares = [...topic.shares.values()]
  let hasShifted = false
  for (;;) {
    const from = topic.unplaced > 0 ? undefined : dearest(shares)
    const to = cheapest(shares)
    if (!to || (from ? gainOf(from) <= costOf(to) : topic.unplaced === 0)) return hasShifted
    if (from) give(topic, from, -1)
    give(topic, to, 1)
    hasShifted = true
  }
}

const costOf = (share: Share) => costOfMore(share) + costOfMore(share.seat.total)
const gainOf = (share: Share) => gainOfLess(share) + gainOfLess(share.seat.total)

function cheapest(shares: readonly Share[]): Share | undefined {
  let best: Share | undefined
  for (const share of shares) if (!best || costOf(share) < costOf(best)) best = share
  return best
}

function dearest(shares: readonly Share[]): Share | undefined {
  let best: Share | undefined
  for (const share of shares) if (share.flow > 0 && (!best || gainOf(share) > gainOf(best))) best = share
  return best
}

/** Which queues make up the counts: a member keeps those that it had, up to its count; then all take what is left. */
function handOut(topic: Topic, current: ReadonlyMap<number, number>): [queueId: number, owner: number][] {
  const kept = new Map<AssignQueue, number>()
  for (const queue of topic.queues) {
    const share = homeOf(topic, queue, current)
    if (!share || share.flow === 0) continue
    share.flow--
    kept.set(queue, share.seat.consumerId)
  }
  const takers = [...topic.shares].flatMap(([consumerId, { flow }]) => Array<number>(flow).fill(consumerId)).values()
  return topic.queues.map(queue => [queue.queueId, kept.get(queue) ?? takers.next().value ?? 0])
}
