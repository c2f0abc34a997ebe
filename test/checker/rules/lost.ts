import { dueFrom, type Facts, groupOf, queueOf, trimmedAt } from '../facts.ts'
import { mayBeDead } from '../failure-facts.ts'
import type { EventOf } from '../history.ts'
import type { Place } from '../log-facts.ts'
import { entryOf } from '../lookup.ts'
import { place, type Violation, violation } from '../violation.ts'

/**
 * P1/Q01. An acknowledged message is lost to a group that read a higher offset of its queue without ever reading it, or
 * that was drained after the acknowledgement without having handled it. Excused: what retention took, what a reset
 * jumped over, and what was sent when the group was not subscribed.
 */
export function* findLost(facts: Facts): Generator<Violation> {
  const readings = gatherReadings(facts)
  for (const places of facts.queues.values()) {
    for (const message of places.values()) {
      if (!message.ack || message.offset <= trimmedAt(facts, message.queueId)) continue
      for (const [group, reading] of readings) {
        const loss = judge(facts, group, reading, message)
        if (loss) yield loss
      }
    }
  }
}

type Reading = {
  /** The names of its places: it has others after it was not subscribed for a while. */
  names: Set<string>
  mustHandle: boolean
  /** Offsets read, and offsets handled, per queue. */
  read: Map<number, Set<number>>
  handled: Map<number, Set<number>>
  /** The pull that went highest, per queue. */
  highest: Map<number, { offset: number; pull: EventOf<'pull-ok'> }>
  drained: EventOf<'drained'>[]
}

function judge(facts: Facts, group: string, reading: Reading, message: Place): Violation | undefined {
  const { queueId, offset, value, ack, publish } = message
  const isRead = reading.read.get(queueId)?.has(offset)
  if (reading.mustHandle ? reading.handled.get(queueId)?.has(offset) : isRead) return
  if ((publish?.invoke.seq ?? -1) < dueFrom(facts, group, publish?.invoke.topic)) return
  const resets = [...reading.names].flatMap(name => facts.resets.get(queueOf({ group: name, queueId })) ?? [])
  if (resets.some(reset => reset.offset >= offset)) return

  const at = `"${value}" (${place(queueId, offset)})`
  const highest = reading.highest.get(queueId)
  if (!isRead && highest && highest.offset > offset) {
    const seen = `group ${group} was never given ${at}, which was acknowledged; it read up to ${highest.offset}`
    return violation('P1/Q01', seen, ack, highest.pull)
  }
  const drained = reading.drained.find(end => isDueBy(end, message))
  if (!drained) return
  const seen = `group ${group} is drained, but ${isRead ? 'never finished' : 'was never given'} ${at}`
  return violation('P1/Q01', `${seen}, which was acknowledged before`, ack, drained)
}

function isDueBy(drained: EventOf<'drained'>, { ack, publish }: Place): boolean {
  if (!ack || ack.seq > drained.seq) return false
  return !drained.topics || (publish !== undefined && drained.topics.includes(publish.invoke.topic))
}

function gatherReadings(facts: Facts): Map<string, Reading> {
  const readings = new Map<string, Reading>()
  const readingOf = (name: string) => {
    const empty = { read: new Map(), handled: new Map(), highest: new Map(), drained: [] }
    const group = groupOf(name)
    const reading = entryOf(readings, group, () => ({ ...empty, names: new Set<string>(), mustHandle: false }))
    reading.names.add(name)
    reading.mustHandle ||= facts.handlingGroups.has(name)
    return reading
  }
  const add = (offsets: Map<number, Set<number>>, queueId: number, offset: number) =>
    entryOf(offsets, queueId, () => new Set()).add(offset)

  for (const event of facts.events) {
    if (event.type === 'drained') readingOf(event.group).drained.push(event)
    if (event.type === 'handle-start') add(readingOf(event.group).read, event.queueId, event.offset)
    if (event.type === 'handle-end' && event.outcome !== 'failed') {
      add(readingOf(event.group).handled, event.queueId, event.offset)
    }
    if (event.type === 'publish-stored') {
      const invoke = facts.events[event.op]
      for (const { failureOf } of invoke?.type === 'publish-invoke' ? invoke.messages : []) {
        if (failureOf) add(readingOf(failureOf.group).handled, failureOf.queueId, failureOf.offset)
      }
    }
    if (event.type !== 'pull-ok') continue
    const { read, handled, highest } = readingOf(event.group)
    for (const { offset, value } of event.messages) {
      add(read, event.queueId, offset)
      if (mayBeDead(facts, event.group, value)) add(handled, event.queueId, offset)
      if (offset > (highest.get(event.queueId)?.offset ?? 0)) highest.set(event.queueId, { offset, pull: event })
    }
  }
  return readings
}
