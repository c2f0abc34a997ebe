import type { EventOf, HistoryEvent } from '../checker/history.ts'
import type { Child } from './child.ts'

/** Questions to what programs have reported. There is one group, so a message is named by its queue and offset. */
export const placeOf = ({ queueId, offset }: { queueId: number; offset: number }) => `${queueId}/${offset}`

export const handledBy = (child: Child) =>
  child
    .events('handle-end')
    .filter(({ outcome }) => outcome === 'ok')
    .map(placeOf)

/** Queue → the highest offset that the service has acknowledged to this consumer as committed. */
export function committedBy(child: Child): Map<number, number> {
  const committed = new Map<number, number>()
  for (const { queueId, offset } of commitsOf(child, 'advanced')) {
    committed.set(queueId, Math.max(offset, committed.get(queueId) ?? 0))
  }
  return committed
}

/** The commits of a consumer that ended so. */
export function commitsOf(child: Child, outcome: EventOf<'commit-ok'>['outcome']): EventOf<'commit-invoke'>[] {
  const ends = child.events('commit-ok').filter(end => end.outcome === outcome)
  return ends.map(({ op }) => child.history[op]).filter(event => event?.type === 'commit-invoke')
}

/** What it has handled and not been told to be committed. */
export function uncommittedOf(child: Child): EventOf<'handle-end'>[] {
  const committed = committedBy(child)
  return child.events('handle-end').filter(({ queueId, offset }) => offset > (committed.get(queueId) ?? 0))
}

/** Queues of the topic that were assigned to it, whether it has them still or not. Those of the fail topic were made later. */
export const queuesOf = (child: Child, { queues }: { queues: number }) =>
  new Set(child.events('assignment-gained').flatMap(({ queueId }) => (queueId <= queues ? queueId : [])))

/**
 * Every handing out of a message but its first. `wasCommitted`: the consumer that had it first had been told that it is
 * committed.
 */
export function findRepeats(events: readonly HistoryEvent[]) {
  const firsts = new Map<string, EventOf<'handle-start'>>()
  const committed = new Map<string, number>()
  const repeats: { first: EventOf<'handle-start'>; again: EventOf<'handle-start'>; wasCommitted: boolean }[] = []
  for (const event of events) {
    if (event.type === 'commit-ok' && event.outcome === 'advanced') {
      const commit = events[event.op]
      if (commit?.type === 'commit-invoke') committed.set(`${commit.client}/${commit.queueId}`, commit.offset)
    }
    if (event.type !== 'handle-start') continue
    const first = firsts.get(placeOf(event))
    if (!first) firsts.set(placeOf(event), event)
    else {
      const wasCommitted = event.offset <= (committed.get(`${first.client}/${event.queueId}`) ?? 0)
      repeats.push({ first, again: event, wasCommitted })
    }
  }
  return repeats
}
