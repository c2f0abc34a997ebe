import type { Facts } from '../facts.ts'
import type { HistoryEvent } from '../history.ts'
import { canHaveStored, publishOf } from '../log-facts.ts'
import { place, type Violation, violation } from '../violation.ts'

/** Q02. Nothing is read that nobody had sent by then, or whose every attempt definitely failed (*aborted read*). */
export function* findAborted(facts: Facts): Generator<Violation> {
  for (const event of facts.events) {
    if (event.type === 'pull-ok') {
      for (const { offset, value } of event.messages) yield* judge(facts, event, event.queueId, offset, value)
    }
    if (event.type === 'handle-start') yield* judge(facts, event, event.queueId, event.offset, event.value)
    if (event.type !== 'publish-ok') continue
    for (const { value, queueId, offset } of event.placed) {
      if (publishOf(facts, event.op, value)) continue
      const seen = `"${value}" was acknowledged at ${place(queueId, offset)} to a publish that did not carry it`
      yield violation('Q02', seen, facts.events[event.op], event)
    }
  }
}

function* judge(facts: Facts, event: HistoryEvent, queueId: number, offset: number, value: string) {
  const read = `${event.client} was given "${value}" at ${place(queueId, offset)}`
  const publishes = [...(facts.sent.get(value)?.publishes.values() ?? [])]
  const [first] = publishes
  if (!first) {
    yield violation('Q02', `${read}, which nobody ever sent`, event)
  } else if (publishes.every(({ invoke }) => invoke.seq > event.seq)) {
    yield violation('Q02', `${read} before it was sent`, event, first.invoke)
  } else if (!publishes.some(publish => canHaveStored(publish, event.seq))) {
    yield violation('Q02', `${read}, but every attempt to publish it until then failed`, first.invoke, event)
  }
}
