import type { Facts } from '../facts.ts'
import { canHaveStored, type Place } from '../log-facts.ts'
import { entryOf } from '../lookup.ts'
import { place, type Violation, violation } from '../violation.ts'
import { hasMoved } from './moved.ts'

/**
 * P8. However often a publishId is sent, its values are stored once: a value has as many places as publishIds (one that a
 * publish carries twice counts twice). Excused:
 * messages of a key that were sent again when the topic's queues had changed, and keys with them.
 */
export function* findDuplicates(facts: Facts): Generator<Violation> {
  const placesOf = new Map<string, Place[]>()
  for (const places of facts.queues.values()) {
    for (const found of places.values()) entryOf(placesOf, found.value, () => []).push(found)
  }
  for (const [value, places] of placesOf) {
    const publishes = facts.sent.get(value)?.publishes
    if (!publishes || places.length < 2) continue
    const storable = [...publishes.values()].filter(publish => canHaveStored(publish))
    const most = storable.reduce((sum, { count }) => sum + count, 0)
    if (places.length <= most && !hasOnePublishTooOften(places)) continue
    if (storable.some(publish => hasMoved(facts, publish, places))) continue
    const shown = places.slice(0, 4)
    const seen = `"${value}" is at ${shown.map(({ queueId, offset }) => place(queueId, offset)).join(' and at ')}`
    const ids = [...publishes.keys()].join(', ')
    yield violation('P8', `${seen}, published under ${ids}`, ...shown.map(({ known }) => known))
  }
}

/** As the acknowledgements tell. */
function hasOnePublishTooOften(places: readonly Place[]): boolean {
  const acked = Map.groupBy(places, ({ ack, publish }) => (ack ? publish : undefined))
  return [...acked].some(([publish, ofIt]) => publish !== undefined && ofIt.length > publish.count)
}
