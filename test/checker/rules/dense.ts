import { type Facts, trimmedAt } from '../facts.ts'
import { canHaveStored, type Place } from '../log-facts.ts'
import { place, type Violation, violation } from '../violation.ts'
import { findGaps } from './gaps.ts'

/**
 * P2. Offsets are 1, 2, 3, … : none is anything else, none is given out twice, none is stepped over by a reader, and
 * there are no more holes in what was acknowledged and read than publishes of unknown outcome could fill.
 */
export function* findHoles(facts: Facts): Generator<Violation> {
  yield* findReuse(facts)
  for (const { pull, first, last, late } of findGaps(facts)) {
    if (late) continue // Q04
    const seen = `${pull.client} stepped over ${place(pull.queueId, first, last)}, not past retention`
    yield violation('P2', seen, facts.queues.get(pull.queueId)?.get(first)?.known, pull)
  }
  yield* findUnfillable(facts)
}

function* findReuse(facts: Facts): Generator<Violation> {
  for (const places of facts.queues.values()) {
    for (const { queueId, offset, value, known } of places.values()) {
      if (Number.isSafeInteger(offset) && offset >= 1) continue
      yield violation('P2', `"${value}" is at ${place(queueId, offset)}; offsets are whole and start at 1`, known)
    }
  }
  const acked = new Map<Place, string>()
  for (const event of facts.events) {
    if (event.type !== 'publish-ok') continue
    for (const { value, queueId, offset } of event.placed) {
      const taken = facts.queues.get(queueId)?.get(offset)
      if (!taken) continue
      const before = acked.get(taken)
      acked.set(taken, value)
      if (before === undefined || before === value) continue
      const seen = `${place(queueId, offset)} was acknowledged to "${before}" and again to "${value}"`
      yield violation('P2', seen, taken.known, event)
    }
  }
}

function* findUnfillable(facts: Facts): Generator<Violation> {
  let holes = 0
  let firstHole: Place | undefined
  let placed = 0
  for (const [queueId, places] of facts.queues) {
    const start = trimmedAt(facts, queueId)
    const found = [...places.values()].filter(({ offset }) => offset > start).sort((a, b) => a.offset - b.offset)
    holes += Math.max(0, (found.at(-1)?.offset ?? start) - start - found.length)
    firstHole ??= found.find(({ offset }, index) => offset > start + index + 1)
    placed += places.size
  }
  let storable = 0
  for (const { publishes } of facts.sent.values()) {
    for (const publish of publishes.values()) storable += canHaveStored(publish) ? publish.count : 0
  }
  const unaccounted = Math.max(0, storable - placed)
  if (!firstHole || holes <= unaccounted) return
  const first = place(firstHole.queueId, firstHole.offset)
  const seen = `${holes} offsets are neither acknowledged nor read, the first below ${first}`
  yield violation('P2', `${seen}; only ${unaccounted} publishes of unknown outcome could be there`, firstHole.known)
}
