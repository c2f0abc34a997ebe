import { epochOf, type Facts } from '../facts.ts'
import type { Place, Publish } from '../log-facts.ts'
import { entryOf } from '../lookup.ts'
import { place, type Violation, violation } from '../violation.ts'
import { findInversions } from './inversions.ts'
import { hasMoved } from './moved.ts'

/**
 * P3/Q05, sending. Messages of one key are in one queue. In a queue, the messages of one producer, and those of one
 * publish, are in the order in which they were sent, as far as the sends did not overlap. (Between producers: Q04.)
 */
export function* findMisordered(facts: Facts): Generator<Violation> {
  const all = [...facts.queues.values()].flatMap(places => [...places.values()])
  yield* findStrayKeys(facts, all)

  const producers = group(all, ({ publish, queueId }) => publish && `${queueId}/${publish.invoke.client}`)
  for (const places of producers.values()) {
    for (const { earlier, later } of findInversions(places)) {
      const seen = `"${later.value}" was sent after "${earlier.value}", but is at ${place(later.queueId, later.offset)}`
      yield violation('P3/Q05', `${seen}, below ${earlier.offset}`, earlier.known, later.publish?.invoke, later.known)
    }
  }

  // Of a value that a publish carries twice it cannot be told which is which.
  const isStill = ({ publish }: Place) => publish && publish.count === 1 && !hasMoved(facts, publish, [])
  const batches = group(all, found =>
    found.publish && isStill(found) ? batchOf(found.queueId, found.publish) : undefined,
  )
  for (const places of batches.values()) {
    places.sort((a, b) => (a.publish?.index ?? 0) - (b.publish?.index ?? 0))
    let highest: Place | undefined
    for (const later of places) {
      if (highest && later.offset < highest.offset) {
        const seen = `"${later.value}" comes after "${highest.value}" in its publish, but is at`
        const at = `${place(later.queueId, later.offset)}, below ${highest.offset}`
        yield violation('P3/Q05', `${seen} ${at}`, later.publish?.invoke, highest.known, later.known)
      } else highest = later
    }
  }
}

/** While a topic's queues change, keys move: only sends that lie wholly between two changes are compared. */
function* findStrayKeys(facts: Facts, all: readonly Place[]): Generator<Violation> {
  const keyOf = ({ publish, known, startSeq }: Place) => {
    if (publish?.key === undefined || startSeq === undefined) return
    const { topic } = publish.invoke
    const epoch = epochOf(facts, topic, startSeq)
    if (epoch === undefined || epoch !== epochOf(facts, topic, known.seq)) return
    return `${topic}/${epoch}/${publish.key}`
  }
  for (const places of group(all, keyOf).values()) {
    const [first] = places
    const stray = places.find(({ queueId }) => queueId !== first?.queueId)
    if (!first || !stray) continue
    const seen = `"${first.value}" is in queue ${first.queueId} and "${stray.value}" in queue ${stray.queueId}`
    yield violation('P3/Q05', `${seen}, both with key "${first.publish?.key}"`, first.known, stray.known)
  }
}

function group(places: readonly Place[], keyOf: (place: Place) => string | undefined): Map<string, Place[]> {
  const groups = new Map<string, Place[]>()
  for (const found of places) {
    const key = keyOf(found)
    if (key !== undefined) entryOf(groups, key, () => []).push(found)
  }
  return groups
}

/** Messages with a key and those without one go in batches of their own. */
const batchOf = (queueId: number, { invoke, key }: Publish) => `${queueId}/${invoke.publishId}/${key !== undefined}`
