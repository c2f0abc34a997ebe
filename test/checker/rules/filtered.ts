import { type Facts, groupOf } from '../facts.ts'
import type { EventOf } from '../history.ts'
import { place, type Violation, violation } from '../violation.ts'

/** Q18. What was not for a group is not handled by it. (That it holds up nothing: Q07 and P1/Q01 count it as done.) */
export function* findHandledThoughFiltered(facts: Facts): Generator<Violation> {
  const filtered = new Map<string, EventOf<'handle-end'>>()
  for (const event of facts.events) {
    if (event.type !== 'handle-start' && event.type !== 'handle-end') continue
    const { client, group, queueId, offset, value } = event
    const key = `${queueId}/${offset}/${groupOf(group)}`
    if (event.type === 'handle-end') {
      if (event.outcome === 'filtered') filtered.set(key, event)
      continue
    }
    const former = filtered.get(key)
    if (!former) continue
    yield violation(
      'Q18',
      `${client} handled "${value}" (${place(queueId, offset)}), which is not for it`,
      former,
      event,
    )
  }
}
