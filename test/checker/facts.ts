import type { EventOf, HistoryEvent } from './history.ts'
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
  /** Groups whose handling is recorded. In others a message counts as handled when it was read. */
  handlingGroups: Set<string>
  pullingGroups: Set<string>
}

export type Commit = { invoke: EventOf<'commit-invoke'>; ok?: EventOf<'commit-ok'> }

/** `endSeq` is infinite while its answer is not known. */
export type Reset = { invoke: EventOf<'reset-invoke'>; endSeq: number; offsetVersion?: number }

export function gatherFacts(events: readonly HistoryEvent[]): Facts {
  const facts: Facts = {
    events,
    sent: new Map(),
    queues: new Map(),
    trims: new Map(),
    commits: new Map(),
    resets: new Map(),
    handlingGroups: new Set(),
    pullingGroups: new Set(),
  }
  const resetOps = new Map<number, Reset>()
  events.forEach((event, index) => {
    if (event.seq !== index)
      throw new Error(`event ${index} has seq ${event.seq}: a history is numbered from 0, merged`)
    trackSends(facts, event)
    trackPlaces(facts, event)
    trackTrims(facts, event)
    trackCommits(facts, event)
    trackResets(facts, resetOps, event)
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

function trackResets(facts: Facts, resetOps: Map<number, Reset>, event: HistoryEvent) {
  if (event.type === 'reset-invoke') {
    const reset = { invoke: event, endSeq: Number.POSITIVE_INFINITY }
    entryOf(facts.resets, queueOf(event), () => []).push(reset)
    resetOps.set(event.seq, reset)
  }
  if (event.type !== 'reset-ok') return
  const reset = resetOps.get(event.op)
  if (!reset) throw new Error(`event ${event.seq} answers reset ${event.op}, which there is none of`)
  reset.endSeq = event.seq
  if (event.offsetVersion !== undefined) reset.offsetVersion = event.offsetVersion
}
