import { type Facts, queueOf } from '../facts.ts'
import type { EventOf, HistoryEvent } from '../history.ts'
import { type Violation, violation } from '../violation.ts'

/**
 * P5/Q06. An offsetVersion belongs to one consumer: no other is told it or advances under it. Once another consumer has
 * advanced under a higher one, or its own consumer has given the queue up, nothing more happens under it.
 */
export function* findTwoOwners(facts: Facts): Generator<Violation> {
  const seen: Seen = { holders: new Map(), givenUp: new Map(), newest: new Map() }
  for (const event of facts.events) {
    if (event.type === 'assignment-gained') {
      yield* judgeHolder(seen, event)
      seen.givenUp.delete(holdingOf(event))
    }
    if (event.type === 'assignment-lost') seen.givenUp.set(holdingOf(event), event)
    if (event.type === 'pull-ok') yield* judgeGivenUp(seen, event)
    if (event.type === 'commit-invoke' && facts.commits.get(event.seq)?.ok?.outcome === 'advanced') {
      yield* judgeHolder(seen, event)
      yield* judgeGivenUp(seen, event)
      yield* judgeSuperseded(seen, event)
    }
    if (event.type === 'commit-ok' && event.outcome === 'advanced') noteAdvance(seen, facts, event.op)
  }
}

type Seen = {
  /** Who first acted under an offsetVersion of a group's queue. */
  holders: Map<string, HistoryEvent>
  /** What a client has given up. */
  givenUp: Map<string, HistoryEvent>
  /** The commit of the highest offsetVersion that is known to have advanced a group's queue. */
  newest: Map<string, EventOf<'commit-invoke'>>
}

type Act = EventOf<'assignment-gained' | 'assignment-lost' | 'pull-ok' | 'commit-invoke'>

function* judgeHolder({ holders }: Seen, act: Act): Generator<Violation> {
  const key = `${act.offsetVersion}/${queueOf(act)}`
  const holder = holders.get(key)
  if (!holder) holders.set(key, act)
  else if (holder.client !== act.client) {
    yield violation('P5/Q06', `${versionText(act)} belongs to ${holder.client} and to ${act.client}`, holder, act)
  }
}

function* judgeGivenUp({ givenUp }: Seen, act: Act): Generator<Violation> {
  const end = givenUp.get(holdingOf(act))
  if (end) yield violation('P5/Q06', `${act.client} went on after giving up ${versionText(act)}`, end, act)
}

function* judgeSuperseded({ newest }: Seen, commit: EventOf<'commit-invoke'>): Generator<Violation> {
  const newer = newest.get(queueOf(commit))
  if (!newer || newer.offsetVersion <= commit.offsetVersion || newer.client === commit.client) return
  const later = `${newer.client} had advanced under ${newer.offsetVersion}`
  yield violation('P5/Q06', `${commit.client} advanced under ${versionText(commit)}, when ${later}`, newer, commit)
}

function noteAdvance({ newest }: Seen, facts: Facts, op: number) {
  const commit = facts.commits.get(op)?.invoke
  if (!commit) return
  const newer = newest.get(queueOf(commit))
  if (!newer || newer.offsetVersion < commit.offsetVersion) newest.set(queueOf(commit), commit)
}

/** One client's tenure of a queue. */
function holdingOf(act: Act): string {
  return `${act.offsetVersion}/${act.client}/${queueOf(act)}`
}

function versionText({ group, queueId, offsetVersion }: Act): string {
  return `offsetVersion ${offsetVersion} of group ${group}, queue ${queueId}`
}
