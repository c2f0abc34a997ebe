import { type Facts, queueOf } from '../facts.ts'
import type { HistoryEvent } from '../history.ts'
import { type Violation, violation } from '../violation.ts'

/**
 * P4, fencing. A commit does not advance under an offsetVersion older than one that somebody had seen by its start, and no
 * failure is stored under it.
 */
export function* findUnfenced(facts: Facts): Generator<Violation> {
  const inForce = new Map<string, Sight>()
  const stored = new Map(facts.events.flatMap(event => (event.type === 'publish-stored' ? [[event.op, event]] : [])))
  for (const event of facts.events) {
    const answer = stored.get(event.seq)
    for (const { value, failureOf } of (answer && event.type === 'publish-invoke' && event.messages) || []) {
      const sight = failureOf && inForce.get(queueOf(failureOf))
      if (!sight || sight.offsetVersion <= failureOf.offsetVersion) continue
      const seen = `${event.client} stored the failure "${value}" under offsetVersion ${failureOf.offsetVersion}`
      yield violation('P4', `${seen}, when ${sight.offsetVersion} was in force`, sight.event, event, answer)
    }
    const commit = facts.commits.get(event.seq)
    if (commit?.ok?.outcome === 'advanced') {
      const sight = inForce.get(queueOf(commit.invoke))
      const { client, group, queueId, offset, offsetVersion } = commit.invoke
      if (sight && sight.offsetVersion > offsetVersion) {
        const to = `${offset} under offsetVersion ${offsetVersion}`
        const seen = `${client} advanced group ${group}, queue ${queueId} to ${to}`
        yield violation('P4', `${seen}, when ${sight.offsetVersion} was in force`, sight.event, event, commit.ok)
      }
    }
    const seen = sightOf(facts, event)
    if (seen && seen.offsetVersion > (inForce.get(seen.key)?.offsetVersion ?? -1)) inForce.set(seen.key, seen)
  }
}

/** An offsetVersion that was in force at the latest when `event` was recorded. */
type Sight = { key: string; offsetVersion: number; event: HistoryEvent }

function sightOf(facts: Facts, event: HistoryEvent): Sight | undefined {
  if (event.type === 'assignment-gained') {
    return { key: queueOf(event), offsetVersion: event.offsetVersion, event }
  }
  if (event.type === 'commit-ok') {
    const commit = facts.commits.get(event.op)
    if (!commit) return
    const proven = event.outcome === 'advanced' ? commit.invoke.offsetVersion : -1
    return { key: queueOf(commit.invoke), offsetVersion: event.offsetVersion ?? proven, event }
  }
  if (event.type === 'reset-ok' && event.offsetVersion !== undefined) {
    const invoke = facts.events[event.op]
    if (invoke?.type === 'reset-invoke') return { key: queueOf(invoke), offsetVersion: event.offsetVersion, event }
  }
}
