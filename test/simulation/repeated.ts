import { groupOf } from '../checker/facts.ts'
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
  /** Where each client began in a queue. */
  const from = new Map<string, number>()
  const { ofAll, ofClient } = gatherStarts(events)

  for (const event of events) {
    if (event.type === 'assignment-gained') from.set(clientKey(event), event.offset)
    if (event.type !== 'handle-start' || mayRepeat.has(groupOf(event.group))) continue
    const key = `${event.group}/${event.queueId}/${event.offset}`
    const first = handled.get(key)
    handled.set(key, { ...event, from: from.get(clientKey(event)) ?? 0 })
    if (!first) continue
    if (wentAhead(first)) {
      excused.add(groupOf(event.group))
      continue
    }
    const text = `"${event.value}" (${key}) went to ${first.client} (#${first.seq}) and to ${event.client} (#${event.seq})`
    findings.push({ property: 'P6', text: `P6: ${text}, though nothing went wrong` })
  }
  return { findings: findings.slice(0, 5), excused }

  function wentAhead(start: Start): boolean {
    const own = ofClient.get(clientKey(start))
    const others = ofAll.get(`${start.queueId}/${start.group}`) ?? []
    return [...others].some(offset => offset > start.from && offset < start.offset && !own?.has(offset))
  }
}

type Start = EventOf<'handle-start'> & { from: number }

const clientKey = ({ client, queueId, group }: EventOf<'handle-start' | 'assignment-gained'>) =>
  `${client}/${queueId}/${group}`

/** The offsets that were handed out at some time, of each queue, and to each client. */
function gatherStarts(events: readonly HistoryEvent[]) {
  const ofAll = new Map<string, Set<number>>()
  const ofClient = new Map<string, Set<number>>()
  for (const event of events) {
    if (event.type !== 'handle-start') continue
    const { group, queueId, offset } = event
    entryOf(ofAll, `${queueId}/${group}`, () => new Set()).add(offset)
    entryOf(ofClient, clientKey(event), () => new Set()).add(offset)
  }
  return { ofAll, ofClient }
}
