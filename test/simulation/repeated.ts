import { groupOf, queueOf } from '../checker/facts.ts'
import type { EventOf, HistoryEvent } from '../checker/history.ts'
import { entryOf } from '../checker/lookup.ts'
import type { Finding } from './judge.ts'
import type { GroupPlan } from './plan.ts'

/**
 * P6. Where nothing goes wrong, a group handles each message once. Excused: what it repeats in place, and what went ahead of
 * another message of its queue that waited for its key or its time: where the queue goes to another consumer before that
 * one's turn, the commit has not passed it, nor what is behind.
 */
export function findRepeated(
  events: readonly HistoryEvent[],
  groups: readonly GroupPlan[],
): { findings: Finding[]; excused: Set<string> } {
  const findings: Finding[] = []
  const excused = new Set<string>()
  const inPlace = groups.filter(({ failures }) => failures?.isChanged || failures?.settings.retryInPlace)
  const mayRepeat = new Set(inPlace.map(({ name }) => name))
  const handled = new Map<string, Start>()
  const starts = gatherStarts(events)

  for (const start of starts) {
    const { event } = start
    if (mayRepeat.has(groupOf(event.group))) continue
    const key = `${event.group}/${event.queueId}/${event.offset}`
    const first = handled.get(key)
    handled.set(key, start)
    if (!first) continue
    if (wentAhead(first)) excused.add(groupOf(event.group))
    else {
      const { client, seq } = first.event
      const text = `"${event.value}" (${key}) went to ${client} (#${seq}) and to ${event.client} (#${event.seq})`
      findings.push({ property: 'P6', text: `P6: ${text}, though nothing went wrong` })
    }
  }
  return { findings: findings.slice(0, 5), excused }
}

/** A message was handed out in an assignment that began behind `from`; `others` are those of it, and `all` of the queue. */
type Start = { event: EventOf<'handle-start'>; from: number; others: Set<number>; all: Set<number> }

function wentAhead({ event, from, others, all }: Start): boolean {
  return [...all].some(offset => offset > from && offset < event.offset && !others.has(offset))
}

function gatherStarts(events: readonly HistoryEvent[]): Start[] {
  const starts: Start[] = []
  const ofQueue = new Map<string, Set<number>>()
  const assignments = new Map<string, { from: number; others: Set<number> }>()
  for (const event of events) {
    if (event.type !== 'assignment-gained' && event.type !== 'handle-start') continue
    const key = `${event.client}/${queueOf(event)}`
    if (event.type === 'assignment-gained') {
      assignments.set(key, { from: event.offset, others: new Set() })
      continue
    }
    const assignment = entryOf(assignments, key, () => ({ from: 0, others: new Set<number>() }))
    const all = entryOf(ofQueue, queueOf(event), () => new Set<number>())
    assignment.others.add(event.offset)
    all.add(event.offset)
    starts.push({ event, ...assignment, all })
  }
  return starts
}
