import { epochOf, type Facts } from '../facts.ts'
import type { Place, Publish } from '../log-facts.ts'

/** Whether the queue of its key may have been another one at a later attempt. */
export function hasMoved(facts: Facts, { invoke, key, attempts }: Publish, places: readonly Place[]): boolean {
  if (key === undefined) return false
  const seqs = [...attempts.map(attempt => attempt.seq), ...places.map(({ known }) => known.seq)]
  const epoch = epochOf(facts, invoke.topic, invoke.seq)
  return epoch === undefined || seqs.some(seq => epochOf(facts, invoke.topic, seq) !== epoch)
}
