import { queueOf, trimmedAt } from '../facts.ts'
import type { EventOf } from '../history.ts'
import type { Place } from '../log-facts.ts'
import {
  all,
  append,
  type Broken,
  blank,
  headOf,
  isAt,
  isSameQueue,
  isSameTenure,
  leaveOut,
  type Mutation,
} from './mutation.ts'

/** What could go wrong between a group and its queues. */
export const groupMutations: Mutation[] = [
  {
    name: 'a group is never given an acknowledged message',
    expected: ['P1/Q01'],
    candidates: history =>
      dueMessages(history).map(({ group, place }) => () => {
        for (const pull of all(history, 'pull-ok')) {
          if (pull.group === group && pull.queueId === place.queueId) leaveOut(pull, place.offset)
        }
        for (const handled of all(history, 'handle-start', 'handle-end')) {
          if (handled.group === group && isAt(handled, place)) blank(history, handled)
        }
      }),
  },
  {
    name: 'a group never finishes an acknowledged message',
    expected: ['P1/Q01'],
    candidates: history =>
      dueMessages(history).map(({ group, place }) => () => {
        for (const end of all(history, 'handle-end')) {
          if (end.group === group && isAt(end, place)) end.outcome = 'failed'
        }
      }),
  },
  {
    name: 'a pull is left out between two others',
    expected: ['P3/Q05'],
    candidates: history =>
      pullsWithMessages(history).flatMap(pull => {
        const next = all(history, 'pull-ok').find(other => other.seq > pull.seq && isSameTenure(other, pull))
        if (!next || next.from <= trimmedAt(history.facts, pull.queueId, next.seq)) return []
        return [() => blank(history, pull)]
      }),
  },
  {
    name: 'a pull is given once more',
    expected: ['P3/Q05'],
    candidates: history =>
      pullsWithMessages(history)
        .filter(({ client, seq }) => !all(history, 'crashed').some(crash => crash.client === client && crash.seq > seq))
        .map(pull => () => append(history, pull)),
  },
  {
    name: 'a commit goes back',
    expected: ['P4'],
    candidates: history =>
      advances(history).flatMap(commit => {
        const before = advances(history).find(other => other.seq < commit.seq && isSameTenure(other, commit))
        return before ? [() => Object.assign(commit, { offset: before.offset })] : []
      }),
  },
  {
    name: 'a commit of an older offsetVersion counts',
    expected: ['P4'],
    candidates: history => advances(history).map(commit => () => commit.offsetVersion--),
  },
  {
    name: 'a new owner is told to begin at 0',
    expected: ['P4'],
    candidates: history =>
      all(history, 'assignment-gained')
        .filter(gained => {
          const before = advances(history).find(
            commit => commit.offsetVersion < gained.offsetVersion && isSameQueue(commit, gained),
          )
          return before && !history.facts.resets.has(queueOf(gained))
        })
        .map(gained => () => Object.assign(gained, { offset: 0 })),
  },
  {
    name: 'a commit of another consumer counts',
    expected: ['P5/Q06'],
    candidates: history => advances(history).map(commit => () => Object.assign(commit, { client: 'thief' })),
  },
  {
    name: 'two consumers are told the same offsetVersion',
    expected: ['P5/Q06'],
    candidates: history => all(history, 'assignment-gained').map(gained => () => append(history, gained, 'twin')),
  },
  {
    name: 'a consumer pulls a queue that it gave up',
    expected: ['P5/Q06'],
    candidates: history =>
      all(history, 'assignment-lost').map(lost => () => {
        append(history, { ...lost, type: 'pull-ok', from: 0, messages: [], skipped: 0 })
      }),
  },
  {
    name: 'a commit passes messages that nobody handled',
    expected: ['Q07'],
    candidates: history =>
      advances(history).map(commit => () => Object.assign(commit, { offset: headOf(history, commit.queueId) + 1 })),
  },
]

function pullsWithMessages(history: Broken): EventOf<'pull-ok'>[] {
  return all(history, 'pull-ok').filter(({ messages }) => messages.length > 0)
}

function advances(history: Broken): EventOf<'commit-invoke'>[] {
  return all(history, 'commit-invoke').filter(({ seq }) => history.facts.commits.get(seq)?.ok?.outcome === 'advanced')
}

/** Acknowledged messages that a drained group must have had, not excused by retention or a reset. */
function dueMessages({ facts, places }: Broken): { group: string; place: Place }[] {
  const due = places.filter(({ ack, queueId, offset }) => ack && offset > trimmedAt(facts, queueId))
  return ['g1', 'g2'].flatMap(group =>
    due
      .filter(({ queueId, offset }) => {
        const resets = facts.resets.get(queueOf({ group, queueId })) ?? []
        return resets.every(({ invoke }) => invoke.offset < offset)
      })
      .map(place => ({ group, place })),
  )
}
