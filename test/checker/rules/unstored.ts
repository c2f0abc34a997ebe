import type { Facts } from '../facts.ts'
import { entryOf } from '../lookup.ts'
import { type Violation, violation } from '../violation.ts'

/**
 * P7/Q10, storing. What the service said that the fail topic has is there, once for each time that it said so, where
 * somebody has read everything. (That it is there only once: P8; that its group is given it: P1/Q01.)
 */
export function* findUnstored(facts: Facts): Generator<Violation> {
  const readUpTo = facts.events.findLast(event => event.type === 'drained' && !event.topics)?.seq ?? -1
  const places = new Map<string, number>()
  for (const queue of facts.queues.values()) {
    for (const { value } of queue.values()) places.set(value, entryOf(places, value, () => 0) + 1)
  }
  for (const { value, publishes } of facts.sent.values()) {
    const due = [...publishes.values()].filter(({ stored }) => stored && stored.seq < readUpTo)
    const times = due.reduce((sum, { count }) => sum + count, 0)
    const found = places.get(value) ?? 0
    if (found >= times) continue
    const seen = `"${value}" was stored ${times} times, as was said, but is there ${found} times`
    yield violation('P7/Q10', seen, ...due.map(({ stored }) => stored))
  }
}
