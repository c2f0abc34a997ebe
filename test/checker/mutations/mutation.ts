import { type Facts, gatherFacts, trimmedAt } from '../facts.ts'
import type { Assigned, EventOf, EventType, HistoryEvent } from '../history.ts'
import type { Place } from '../log-facts.ts'
import type { Property } from '../violation.ts'

/** One way to break a correct history, and the property that is then broken (one of them at least is found). */
export type Mutation = {
  name: string
  expected: Property[]
  /** Everything that it could do to this history; only what a client could not help noticing. */
  candidates: (history: Broken) => (() => void)[]
}

/** A copy of a history, to be changed in place, and the facts of the original. */
export type Broken = { events: HistoryEvent[]; facts: Facts; places: Place[] }

/** Does one of the things that the mutation could do; undefined if there is none. */
export function mutate(
  original: readonly HistoryEvent[],
  mutation: Mutation,
  pick: number,
): HistoryEvent[] | undefined {
  const facts = gatherFacts(original)
  const places = [...facts.queues.values()].flatMap(queue => [...queue.values()])
  const events = structuredClone([...original])
  const candidates = mutation.candidates({ events, facts, places })
  candidates[pick % Math.max(1, candidates.length)]?.()
  return candidates.length > 0 ? events : undefined
}

export function all<T extends EventType>({ events }: Broken, ...types: T[]): EventOf<T>[] {
  return events.filter((event): event is EventOf<T> => types.some(type => type === event.type))
}

/** The same event again, or another client's, at the end. */
export function append({ events }: Broken, event: HistoryEvent, client = event.client) {
  events.push({ ...structuredClone(event), client, seq: events.length })
}

/** Takes an event out; one that says nothing keeps its place. */
export function blank({ events }: Broken, { seq, at }: HistoryEvent) {
  events[seq] = { seq, at, client: 'nobody', type: 'crashed' }
}

type Position = { queueId: number; offset: number }

export function isAt(a: Position, b: Position): boolean {
  return a.queueId === b.queueId && a.offset === b.offset
}

export function isReadBy(pull: EventOf<'pull-ok'>, { queueId, offset }: Position): boolean {
  return pull.queueId === queueId && pull.messages.some(message => message.offset === offset)
}

export function leaveOut(pull: EventOf<'pull-ok'>, offset: number) {
  pull.messages = pull.messages.filter(message => message.offset !== offset)
}

/** The highest offset of a queue. */
export function headOf({ facts, places }: Broken, queueId: number): number {
  return Math.max(
    trimmedAt(facts, queueId),
    ...places.filter(place => place.queueId === queueId).map(({ offset }) => offset),
  )
}

export function isSameQueue(a: Assigned, b: Assigned): boolean {
  return a.group === b.group && a.queueId === b.queueId
}

type Tenure = Assigned & { client: string }

export function isSameTenure(a: Tenure, b: Tenure): boolean {
  return isSameQueue(a, b) && a.client === b.client && a.offsetVersion === b.offsetVersion
}
