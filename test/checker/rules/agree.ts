import type { Facts } from '../facts.ts'
import type { HistoryEvent } from '../history.ts'
import { place, type Violation, violation } from '../violation.ts'

/** Q03. Whoever names the value at an offset, publisher, reader or handler, names the same one. */
export function* findDisagreements(facts: Facts): Generator<Violation> {
  for (const event of facts.events) {
    for (const { queueId, offset, value } of claimsOf(event)) {
      const found = facts.queues.get(queueId)?.get(offset)
      if (!found || found.value === value) continue
      const first = `"${found.value}" to ${found.known.client}`
      const seen = `${place(queueId, offset)} is ${first}, "${value}" to ${event.client}`
      yield violation('Q03', seen, found.known, event)
    }
  }
}

function claimsOf(event: HistoryEvent): { queueId: number; offset: number; value: string }[] {
  if (event.type === 'publish-ok') return event.placed
  if (event.type === 'pull-ok') return event.messages.map(message => ({ ...message, queueId: event.queueId }))
  if (event.type === 'handle-start' || event.type === 'handle-end') return [event]
  return []
}
