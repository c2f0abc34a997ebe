import { type Facts, trimmedAt } from '../facts.ts'
import type { EventOf } from '../history.ts'
import type { Place } from '../log-facts.ts'
import { entryOf, lowerBound } from '../lookup.ts'

/** Offsets that one pull passed over though retention had not taken them: the reader will never ask for them again. */
export type Gap = {
  pull: EventOf<'pull-ok'>
  first: number
  last: number
  /** A message that turned up in the gap after the pull had passed it. */
  late: Place | undefined
}

export function* findGaps(facts: Facts): Generator<Gap> {
  const sorted = new Map<number, Place[]>()
  const placesOf = (queueId: number) =>
    entryOf(sorted, queueId, () => [...(facts.queues.get(queueId)?.values() ?? [])].sort((a, b) => a.offset - b.offset))
  for (const pull of facts.events) {
    if (pull.type !== 'pull-ok') continue
    for (const [after, before] of jumpsOf(pull)) {
      const first = Math.max(after, trimmedAt(facts, pull.queueId, pull.seq)) + 1
      const last = before - 1
      if (first > last) continue
      yield { pull, first, last, late: findLate(placesOf(pull.queueId), pull, first, last) }
    }
  }
}

/** Where a pull steps by more than one: `[the offset before, the offset after]`. */
function* jumpsOf({ from, messages, skipped }: EventOf<'pull-ok'>): Generator<[number, number]> {
  let position = from
  for (const { offset } of messages) {
    if (offset > position + 1) yield [position, offset]
    position = Math.max(position, offset)
  }
  if (messages.length === 0 && skipped > 0) yield [from, from + skipped + 1]
}

function findLate(sorted: readonly Place[], pull: EventOf<'pull-ok'>, first: number, last: number): Place | undefined {
  for (let index = lowerBound(sorted, place => place.offset, first); index < sorted.length; index++) {
    const found = sorted[index]
    if (!found || found.offset > last) return
    if (found.known.seq > pull.seq) return found
  }
}
