import type { Facts } from '../facts.ts'
import type { Place } from '../log-facts.ts'
import { place, type Violation, violation } from '../violation.ts'
import { findGaps } from './gaps.ts'
import { findInversions } from './inversions.ts'

/**
 * Q04. Once an offset was readable or acknowledged, nothing appears below it: neither behind a reader that has passed,
 * nor from a publish that began only afterwards.
 */
export function* findLateGaps(facts: Facts): Generator<Violation> {
  for (const { pull, late } of findGaps(facts)) {
    if (!late) continue
    const seen = `"${late.value}" turned up at ${place(late.queueId, late.offset)}`
    yield violation('Q04', `${seen} after ${pull.client} had read past it`, pull, late.known)
  }
  for (const places of facts.queues.values()) {
    for (const { earlier, later } of findInversions([...places.values()])) {
      if (isOneSender(earlier, later)) continue // P3/Q05
      const at = `${place(later.queueId, later.offset)}, below ${earlier.offset}`
      const seen = `"${later.value}" was sent when "${earlier.value}" was there already, but is at ${at}`
      yield violation('Q04', seen, earlier.known, later.publish?.invoke, later.known)
    }
  }
}

function isOneSender({ publish: a }: Place, { publish: b }: Place): boolean {
  return a !== undefined && b !== undefined && a.invoke.client === b.invoke.client
}
