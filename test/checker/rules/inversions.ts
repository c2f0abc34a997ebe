import type { Place } from '../log-facts.ts'

/** Two messages of one queue: `earlier` existed before `later` was sent, and yet has the higher offset. */
export type Inversion = { earlier: Place; later: Place }

/** Finds messages that have an inversion, each with the worst one. Sorts, then one pass. */
export function* findInversions(places: readonly Place[]): Generator<Inversion> {
  const byKnown = places.toSorted((a, b) => a.known.seq - b.known.seq)
  const byStart = places
    .flatMap(place => (place.startSeq === undefined ? [] : { place, startSeq: place.startSeq }))
    .sort((a, b) => a.startSeq - b.startSeq)

  let highest: Place | undefined
  let next = 0
  for (const { place: later, startSeq } of byStart) {
    for (let place = byKnown[next]; place && place.known.seq < startSeq; place = byKnown[++next]) {
      if (!highest || place.offset > highest.offset) highest = place
    }
    if (highest && highest.offset > later.offset) yield { earlier: highest, later }
  }
}
