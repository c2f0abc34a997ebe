import { type Facts, queueOf, trimmedAt } from '../facts.ts'
import type { EventOf, HistoryEvent } from '../history.ts'
import { place, type Violation, violation } from '../violation.ts'

/**
 * P3/Q05, handing out. Within one assignment a consumer is given a queue's messages in offset order, beginning where it
 * was told to, and each pull goes on where the one before ended. (Jumps inside one pull: P2, Q04.)
 */
export function* findOutOfTurn(facts: Facts): Generator<Violation> {
  // Per client, so that a crash can forget them; by queue, group and offsetVersion.
  const assignments = new Map<string, Map<string, Position>>()
  for (const event of facts.events) {
    if (event.type === 'crashed') assignments.delete(event.client)
    if (event.type !== 'assignment-gained' && event.type !== 'pull-ok') continue
    const positions = assignments.get(event.client) ?? new Map<string, Position>()
    assignments.set(event.client, positions)
    const key = `${event.offsetVersion}/${queueOf(event)}`
    if (event.type === 'pull-ok') yield* judge(facts, event, positions.get(key))
    positions.set(key, { offset: endOf(event), event })
  }
}

/** Where an assignment stands, and the event that brought it there. */
type Position = { offset: number; event: HistoryEvent }

function* judge(facts: Facts, pull: EventOf<'pull-ok'>, position: Position | undefined): Generator<Violation> {
  const { client, queueId, from, messages } = pull
  if (position && from > Math.max(position.offset, trimmedAt(facts, queueId, pull.seq))) {
    const seen = `${client} stood at ${position.offset} and went on from ${from}`
    const missed = place(queueId, position.offset + 1, from)
    yield violation('P3/Q05', `${seen}: ${missed} left out of the assignment`, position.event, pull)
  }
  let last = Math.max(from, position?.offset ?? 0)
  for (const { offset, value } of messages) {
    if (offset <= last) {
      const seen = `${client} was given "${value}" at ${place(queueId, offset)} when it had ${last} already`
      yield violation('P3/Q05', seen, position?.event, pull)
      break
    }
    last = offset
  }
}

function endOf(event: EventOf<'assignment-gained' | 'pull-ok'>): number {
  if (event.type === 'assignment-gained') return event.offset
  return event.messages.at(-1)?.offset ?? event.from + event.skipped
}
