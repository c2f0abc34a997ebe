import type { EventOf, HistoryEvent, RetryRules } from './history.ts'
import { type Place, type Sent, settlePlaces, trackPlaces, trackSends } from './log-facts.ts'
import { entryOf, lowerBound } from './lookup.ts'

/** A history, looked up: what several rules need to know of it, gathered in one pass. */
export type Facts = {
  events: readonly HistoryEvent[]
  /** Every value that somebody tried to publish. */
  sent: Map<string, Sent>
  /** Every offset that anybody heard of, per queue. */
  queues: Map<number, Map<number, Place>>
  /** Per queue, in order: offsets up to `upTo` may be gone from `seq` on. */
  trims: Map<number, { seq: number; upTo: number }[]>
  /** Commits by the `seq` that began them. */
  commits: Map<number, Commit>
  /** Explicit resets of each `queueOf` a group. */
  resets: Map<string, Reset[]>
  /** The same by the `seq` that began them. */
  resetOps: Map<number, Reset>
  /** Group, or group and topic, → from where on what is sent is its own; infinite: it is not subscribed. */
  dueFrom: Map<string, number>
  /** Topic → when its queues changed, in order. */
  changes: Map<string, { seq: number; isSettled: boolean }[]>
  /** Group and topic, or fail topic, → all rules that the group may have gone by. */
  retryRules: Map<string, RetryRules[]>
  /** Groups whose handling is recorded. In others a message counts as handled when it was read. */
  handlingGroups: Set<string>
  pullingGroups: Set<string>
}

export type Commit = { invoke: EventOf<'commit-invoke'>; ok?: EventOf<'commit-ok'> }

/** `endSeq` is infinite while its answer is not known. */
export type Reset = { invoke: EventOf<'reset-invoke'>; endSeq: number; offsetVersion?: number; offset: number }

export function gatherFacts(events: readonly HistoryEvent[]): Facts {
  const facts: Facts = {
    events,
    sent: new Map(),
    queues: new Map(),
    trims: new Map(),
    commits: new Map(),
    resets: new Map(),
    resetOps: new Map(),
    dueFrom: new Map(),
    changes: new Map(),
    retryRules: new Map(),
    handlingGroups: new Set(),
    pullingGroups: new Set(),
  }
  events.forEach((event, index) => {
    if (event.seq !== index)
      throw new Error(`event ${index} has seq ${event.seq}: a history is numbered from 0, merged`)
    trackSends(facts, event)
    trackPlaces(facts, event)
    trackTrims(facts, event)
    trackCommits(facts, event)
    trackResets(facts, event)
    trackSubscriptions(facts, event)
    if (event.type === 'queues-changed') entryOf(facts.changes, event.topic, () => []).push(event)
    trackRetryRules(facts, event)
    if (event.type === 'handle-start' || event.type === 'handle-end') facts.handlingGroups.add(event.group)
    if (event.type === 'pull-ok') facts.pullingGroups.add(event.group)
  })
  settlePlaces(facts)
  return facts
}

/** A group's place in a queue, as a key. */
export function queueOf({ group, queueId }: { group: string; queueId: number }): string {
  return `${queueId}/${group}`
}

/** The group that has this place, whichever of its subscriptions it is of. */
export const groupOf = (group: string) => group.replace(/@.*/, '')

/** The group that this one is a copy of, or itself. */
const originOf = (group: string) => group.replace(/~.*/, '')

/** What was sent to a topic before is not promised to the group. */
export function dueFrom({ dueFrom }: Facts, group: string, topic: string | undefined): number {
  const keys = [group, `${group}/${topic}`, `${originOf(group)}/${topic}`]
  return Math.max(...keys.map(key => dueFrom.get(key) ?? -1))
}

/** Which state of a topic's queues event `seq` met; undefined: one that was not settled. */
export function epochOf({ changes }: Facts, topic: string, seq: number): number | undefined {
  const ofTopic = changes.get(topic) ?? []
  const epoch = ofTopic.findLastIndex(change => change.seq < seq)
  return ofTopic[epoch]?.isSettled === false ? undefined : epoch
}

/** Offsets of the queue up to here may have been gone when event `seq` happened. */
export function trimmedAt(facts: Facts, queueId: number, seq = Number.POSITIVE_INFINITY): number {
  const trims = facts.trims.get(queueId) ?? []
  return trims[lowerBound(trims, trim => trim.seq, seq) - 1]?.upTo ?? 0
}

function trackTrims(facts: Facts, event: HistoryEvent) {
  if (event.type !== 'trim') return
  const trims = entryOf(facts.trims, event.queueId, () => [])
  trims.push({ seq: event.seq, upTo: Math.max(event.upTo, trims.at(-1)?.upTo ?? 0) })
}

function trackCommits(facts: Facts, event: HistoryEvent) {
  if (event.type === 'commit-invoke') facts.commits.set(event.seq, { invoke: event })
  if (event.type !== 'commit-ok') return
  const commit = facts.commits.get(event.op)
  if (!commit) throw new Error(`event ${event.seq} answers commit ${event.op}, which there is none of`)
  commit.ok = event
}

function trackResets(facts: Facts, event: HistoryEvent) {
  if (event.type === 'reset-invoke') {
    const reset = { invoke: event, endSeq: Number.POSITIVE_INFINITY, offset: event.offset }
    entryOf(facts.resets, queueOf(event), () => []).push(reset)
    facts.resetOps.set(event.seq, reset)
  }
  if (event.type !== 'reset-ok') return
  const reset = facts.resetOps.get(event.op)
  if (!reset) throw new Error(`event ${event.seq} answers reset ${event.op}, which there is none of`)
  reset.endSeq = event.seq
  if (event.offsetVersion !== undefined) reset.offsetVersion = event.offsetVersion
  if (event.offset !== undefined) reset.offset = event.offset
}

function trackSubscriptions({ dueFrom }: Facts, event: HistoryEvent) {
  if (event.type === 'unsubscribed') dueFrom.set(`${event.group}/${event.topic}`, Number.POSITIVE_INFINITY)
  if (event.type !== 'subscribed') return
  dueFrom.set(event.topic === undefined ? event.group : `${event.group}/${event.topic}`, event.seq)
}

function trackRetryRules({ retryRules }: Facts, event: HistoryEvent) {
  if (event.type !== 'retry-rules') return
  for (const topic of [event.topic, event.failTopic])
    entryOf(retryRules, `${event.group}/${topic}`, () => []).push(event)
}
