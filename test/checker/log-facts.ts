import type { Facts } from './facts.ts'
import type { EventOf, FailedMessage, HistoryEvent } from './history.ts'
import { entryOf } from './lookup.ts'

/** A value, and every publish (one publishId, however many attempts) that carried it. */
export type Sent = { value: string; publishes: Map<string, Publish> }

export type Publish = {
  /** The first attempt. */
  invoke: EventOf<'publish-invoke'>
  /** The value's first position in the first attempt, and how often it is there. */
  index: number
  count: number
  key: string | undefined
  failureOf: FailedMessage | undefined
  /** The answer said that it is stored, and not where. */
  stored?: EventOf<'publish-stored'>
  /** Begun at `seq`. One that has definitely failed did not store the value. */
  attempts: { seq: number; hasFailed: boolean }[]
}

/** An offset of a queue that somebody heard of. */
export type Place = {
  queueId: number
  offset: number
  /** The value that was first seen there. */
  value: string
  /** The event that first told of it: from there on the message exists. */
  known: HistoryEvent
  ack?: EventOf<'publish-ok' | 'publish-stored'>
  /** The publish that put it there; undefined if that cannot be told. */
  publish?: Publish
  /** The message cannot have existed before this event. Undefined if nobody sent the value. */
  startSeq?: number
}

export function trackSends(facts: Facts, event: HistoryEvent) {
  if (event.type === 'publish-invoke') {
    event.messages.forEach(({ value, key, failureOf }, index) => {
      const { publishes } = entryOf(facts.sent, value, () => ({ value, publishes: new Map() }))
      const publish = entryOf(publishes, event.publishId, (): Publish => {
        return { invoke: event, index, count: 0, key, failureOf, attempts: [] }
      })
      if (publish.invoke === event) publish.count++
      if (publish.attempts.at(-1)?.seq !== event.seq) publish.attempts.push({ seq: event.seq, hasFailed: false })
    })
  }
  if (event.type === 'publish-stored') {
    const invoke = facts.events[event.op]
    for (const { value } of invoke?.type === 'publish-invoke' ? invoke.messages : []) {
      const publish = publishOf(facts, event.op, value)
      if (publish) publish.stored ??= event
    }
  }
  if (event.type === 'publish-fail') {
    for (const value of event.values) {
      const attempt = publishOf(facts, event.op, value)?.attempts.find(({ seq }) => seq === event.op)
      if (attempt) attempt.hasFailed = true
    }
  }
}

export function trackPlaces(facts: Facts, event: HistoryEvent) {
  if (event.type === 'publish-ok') {
    for (const { value, queueId, offset } of event.placed) {
      const place = placeAt(facts, event, queueId, offset, value)
      if (place.value !== value) continue
      place.ack ??= event
      const publish = publishOf(facts, event.op, value)
      if (publish) place.publish ??= publish
    }
  }
  if (event.type === 'pull-ok') {
    for (const { offset, value } of event.messages) placeAt(facts, event, event.queueId, offset, value)
  }
  if (event.type === 'handle-start') placeAt(facts, event, event.queueId, event.offset, event.value)
}

/** Once all is read: finds out which publish each place came from, also where no answer said so. */
export function settlePlaces(facts: Facts) {
  for (const places of facts.queues.values()) {
    for (const place of places.values()) {
      const publishes = [...(facts.sent.get(place.value)?.publishes.values() ?? [])]
      const [only, ...others] = publishes.filter(publish => canHaveStored(publish))
      if (only && others.length === 0) place.publish ??= only
      const stored = publishes.filter(publish => canHaveStored(publish)).map(publish => publish.stored)
      // Which of several copies alike was meant is not known.
      const last = stored.every(event => event !== undefined) ? stored.at(-1) : undefined
      if (last) place.ack ??= last
      const candidates = place.publish ? [place.publish] : publishes
      if (candidates.length > 0) place.startSeq = Math.min(...candidates.map(({ invoke }) => invoke.seq))
    }
  }
}

/** Whether, before event `seq`, some attempt had begun that did not definitely fail. */
export function canHaveStored({ attempts }: Publish, seq = Number.POSITIVE_INFINITY): boolean {
  return attempts.some(attempt => attempt.seq < seq && !attempt.hasFailed)
}

/** The publish of this value that operation `op` is an attempt of. */
export function publishOf(facts: Facts, op: number, value: string): Publish | undefined {
  const invoke = facts.events[op]
  if (invoke?.type !== 'publish-invoke') throw new Error(`event ${op} is answered as a publish, but is none`)
  return facts.sent.get(value)?.publishes.get(invoke.publishId)
}

function placeAt(facts: Facts, known: HistoryEvent, queueId: number, offset: number, value: string): Place {
  const places = entryOf(facts.queues, queueId, () => new Map<number, Place>())
  return entryOf(places, offset, () => ({ queueId, offset, value, known }))
}
