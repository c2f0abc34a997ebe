import { type Facts, queueOf } from '../facts.ts'
import { boundsOf, failureOf } from '../failure-facts.ts'
import type { EventOf, Ordering } from '../history.ts'
import { place, type Violation, violation } from '../violation.ts'

/**
 * P3/Q05, handling. In one assignment calls begin in the order of the queue, or of each key; of one key only one message
 * is in hand at a time, and of all no more than the settings ever let be. A message is in hand until it is handled or the
 * fail topic has it. (What has failed is handled again when it is due, in no order.)
 */
export function* findHandledOutOfTurn(facts: Facts): Generator<Violation> {
  const assignments = new Map<string, Assignment>()
  for (const event of facts.events) {
    if (event.type === 'assignment-gained') {
      const { client, ordering } = event
      const nothing = { inHand: new Map(), begun: new Map(), suspect: undefined }
      assignments.set(`${client}/${queueOf(event)}`, { ordering, ...nothing })
    }
    if (event.type === 'suspected') {
      const assignment = assignments.get(`${event.client}/${queueOf(event)}`)
      if (assignment) assignment.suspect = event.offset
    }
    if (event.type === 'handle-start') {
      const assignment = assignments.get(`${event.client}/${queueOf(event)}`)
      if (assignment) yield* judge(facts, event, assignment)
    }
    if (event.type === 'handle-end' && event.outcome !== 'failed') {
      assignments.get(`${event.client}/${queueOf(event)}`)?.inHand.delete(event.offset)
    }
    if (event.type !== 'publish-stored') continue
    const invoke = facts.events[event.op]
    for (const { failureOf: failed } of invoke?.type === 'publish-invoke' ? invoke.messages : []) {
      if (failed) assignments.get(`${event.client}/${queueOf(failed)}`)?.inHand.delete(failed.offset)
    }
  }
}

type Assignment = {
  /** Undefined: it is not known. */
  ordering: Ordering | undefined
  /** What was begun and is not done, by offset. */
  inHand: Map<number, EventOf<'handle-start'>>
  /** The last offset that was begun, of each key, or of all. */
  begun: Map<string, EventOf<'handle-start'>>
  /** It has failed without a call, and may be handled in place after others. */
  suspect: number | undefined
}

function* judge(facts: Facts, start: EventOf<'handle-start'>, assignment: Assignment) {
  const { ordering, inHand, begun, suspect } = assignment
  const { client, group, queueId, offset, value } = start
  const isRepeated = inHand.has(offset)
  const isCopy = failureOf(facts, value) !== undefined
  const key = keyOf(facts, value)
  const did = `${client} began "${value}" (${place(queueId, offset)})`
  if (ordering === 'key' && key !== undefined) {
    const other = [...inHand.values()].find(event => event.offset !== offset && keyOf(facts, event.value) === key)
    if (other) yield violation('P3/Q05', `${did} while "${other.value}" of the same key was in hand`, other, start)
  }
  inHand.set(offset, start)
  const bounds = boundsOf(facts, group, value)
  const atOnce = isCopy ? bounds?.atOnceRetried : bounds?.atOnce
  if (atOnce !== undefined && inHand.size > atOnce) {
    const held = [...inHand.keys()].join(', ')
    yield violation('P3/Q05', `${did}, and had ${held} of the queue in hand: ${atOnce} at once at most`, start)
  }
  const lane = ordering === 'key' ? key : ordering && ''
  if (isCopy || isRepeated || offset === suspect || lane === undefined) return
  const last = begun.get(lane)
  if (last && last.offset > offset) yield violation('P3/Q05', `${did} behind "${last.value}"`, last, start)
  else begun.set(lane, start)
}

function keyOf(facts: Facts, value: string): string | undefined {
  const [publish] = facts.sent.get(value)?.publishes.values() ?? []
  return publish?.key
}
