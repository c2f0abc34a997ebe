/**
 * Who gets which queues. Fair: the members' counts differ by at most one, as far as the topics that each can handle
 * allow, and so do their counts per topic, as far as the counts in all allow. Sticky: a queue stays with its owner
 * unless fairness takes it away. The same input gives the same answer.
 */
export type AssignMember = { consumerId: number; topicNames: readonly string[] }
export type AssignQueue = { queueId: number; topicName: string }
/** Queue → owner; 0: nobody may take it. */
export type Assignment = Map<number, number>

export function assignQueues(
  members: readonly AssignMember[],
  queues: readonly AssignQueue[],
  current: ReadonlyMap<number, number>,
): Assignment {
  const board = createBoard(members, queues, current)
  for (const queue of board.queues) if (queue.owner === undefined) placeNew(board, queue)
  while (evenOut(board)) {}
  while (evenOutTopics(board)) {}
  return new Map(board.queues.map(queue => [queue.queueId, queue.owner?.consumerId ?? 0]))
}

type Seat = { consumerId: number; topics: ReadonlySet<string>; owned: Set<Slot>; perTopic: Map<string, number> }
type Slot = AssignQueue & { owner: Seat | undefined; home: Seat | undefined }
type Board = { seats: Seat[]; queues: Slot[] }

const load = (seat: Seat) => seat.owned.size
const topicLoad = (seat: Seat, topicName: string) => seat.perTopic.get(topicName) ?? 0

function createBoard(
  members: readonly AssignMember[],
  queues: readonly AssignQueue[],
  current: ReadonlyMap<number, number>,
): Board {
  const seats = [...members]
    .sort((a, b) => a.consumerId - b.consumerId)
    .map(m => ({
      consumerId: m.consumerId,
      topics: new Set(m.topicNames),
      owned: new Set<Slot>(),
      perTopic: new Map<string, number>(),
    }))
  const byId = new Map(seats.map(seat => [seat.consumerId, seat]))
  const slots = [...queues]
    .sort((a, b) => a.queueId - b.queueId)
    .map((queue): Slot => {
      const owner = byId.get(current.get(queue.queueId) ?? 0)
      const home = owner?.topics.has(queue.topicName) ? owner : undefined
      return { ...queue, owner: undefined, home }
    })
  for (const slot of slots) if (slot.home) give(slot, slot.home)
  return { seats, queues: slots }
}

function give(slot: Slot, to: Seat): void {
  const from = slot.owner
  if (from) {
    from.owned.delete(slot)
    from.perTopic.set(slot.topicName, topicLoad(from, slot.topicName) - 1)
  }
  slot.owner = to
  to.owned.add(slot)
  to.perTopic.set(slot.topicName, topicLoad(to, slot.topicName) + 1)
}

function placeNew(board: Board, slot: Slot): void {
  let best: Seat | undefined
  for (const seat of board.seats) {
    if (!seat.topics.has(slot.topicName)) continue
    const better =
      best === undefined ||
      load(seat) < load(best) ||
      (load(seat) === load(best) && topicLoad(seat, slot.topicName) < topicLoad(best, slot.topicName))
    if (better) best = seat
  }
  if (best) give(slot, best)
}

/**
 * Shifts one queue along the shortest chain of members from one that has at least two more to one that has less. While
 * there is such a chain the counts are not as even as they can be; when there is none, they are.
 */
function evenOut(board: Board): boolean {
  const poorestFirst = [...board.seats].sort((a, b) => load(a) - load(b))
  for (const poor of poorestFirst) {
    // From `poor` backwards: who could pass a queue on to whom.
    const next = new Map<Seat, { seat: Seat; slot: Slot }>()
    const reached = [poor]
    for (const to of reached) {
      for (const from of board.seats) {
        if (from === poor || next.has(from)) continue
        const slot = pickQueue(from, to)
        if (!slot) continue
        next.set(from, { seat: to, slot })
        reached.push(from)
      }
    }
    const rich = reached.filter(seat => load(seat) >= load(poor) + 2).sort((a, b) => load(b) - load(a))[0]
    if (!rich) continue
    for (let at: Seat = rich; at !== poor; ) {
      const step = next.get(at)
      if (!step) throw new Error('a chain of members is broken')
      give(step.slot, step.seat)
      at = step.seat
    }
    return true
  }
  return false
}

/** The queue that `from` gives to `to` with the least harm: one that was `to`'s, or is not `from`'s for long, first. */
function pickQueue(from: Seat, to: Seat): Slot | undefined {
  let best: Slot | undefined
  let bestRank = Number.NEGATIVE_INFINITY
  for (const slot of from.owned) {
    if (!to.topics.has(slot.topicName)) continue
    const homeRank = slot.home === to ? 2 : slot.home === from ? 0 : 1
    const rank = homeRank * 1e6 + topicLoad(from, slot.topicName) - topicLoad(to, slot.topicName)
    if (rank > bestRank) {
      best = slot
      bestRank = rank
    }
  }
  return best
}

/** Evens one topic out between two members, by a swap that leaves their counts in all as even as they are. */
function evenOutTopics(board: Board): boolean {
  for (const rich of board.seats) {
    for (const [topicName, count] of rich.perTopic) {
      for (const poor of board.seats) {
        if (!poor.topics.has(topicName) || count < topicLoad(poor, topicName) + 2) continue
        const given = firstOf(rich, topicName)
        if (!given) continue
        if (load(rich) > load(poor)) {
          give(given, poor)
          return true
        }
        const back = [...poor.perTopic].find(
          ([other, has]) => other !== topicName && rich.topics.has(other) && has > topicLoad(rich, other),
        )
        const returned = back && firstOf(poor, back[0])
        if (!returned) continue
        give(given, poor)
        give(returned, rich)
        return true
      }
    }
  }
  return false
}

/** A queue of the topic that the member holds; one that is not at home with it first. */
function firstOf(seat: Seat, topicName: string): Slot | undefined {
  const held = [...seat.owned].filter(slot => slot.topicName === topicName)
  return held.find(slot => slot.home !== seat) ?? held[0]
}
