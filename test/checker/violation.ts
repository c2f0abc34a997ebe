import type { Facts } from './facts.ts'
import type { HistoryEvent } from './history.ts'

/** The promises (P, of docs/architecture.md) and properties (Q) that the checker can find broken. */
export type Property =
  | 'P1/Q01'
  | 'P2'
  | 'P3/Q05'
  | 'P4'
  | 'P5/Q06'
  | 'P7/Q10'
  | 'P8'
  | 'Q02'
  | 'Q03'
  | 'Q04'
  | 'Q07'
  | 'Q18'

export type Violation = {
  property: Property
  /** What was seen, in a sentence with the values. */
  seen: string
  /** The events that show it, in order. */
  events: HistoryEvent[]
}

/** A rule looks for one property's violations, and finds no more than it is asked for. */
export type Rule = (facts: Facts) => Iterable<Violation>

export function violation(property: Property, seen: string, ...events: (HistoryEvent | undefined)[]): Violation {
  const shown = events.filter(event => event !== undefined)
  return { property, seen, events: shown.sort((a, b) => a.seq - b.seq) }
}

/** `queue 3, offset 7`, or a run of offsets. */
export function place(queueId: number, offset: number, last = offset): string {
  return last > offset ? `queue ${queueId}, offsets ${offset} to ${last}` : `queue ${queueId}, offset ${offset}`
}

/** Violations as text, empty when there are none: what a failing test should print. */
export function explain(violations: readonly Violation[]): string {
  return violations
    .map(({ property, seen, events }) => [`${property}: ${seen}`, ...events.map(describeEvent)].join('\n    '))
    .join('\n')
}

const maxEventLength = 200

function describeEvent(event: HistoryEvent): string {
  const { seq, at, client, type, ...rest } = event
  const text = JSON.stringify(rest)
  return `#${seq} ${client} ${type} ${text.length > maxEventLength ? `${text.slice(0, maxEventLength)}…` : text}`
}
