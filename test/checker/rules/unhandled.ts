import { type Facts, queueOf } from '../facts.ts'
import { mayBeDead } from '../failure-facts.ts'
import type { HistoryEvent } from '../history.ts'
import { entryOf } from '../lookup.ts'
import { place, type Violation, violation } from '../violation.ts'

/**
 * Q07. No commit, and no offset that a new owner is told, passes a message that some consumer of the group has not
 * finished by then: handled, moved to the fail topic, filtered out, or given as a dead letter. Excused: what retention took
 * and what a reset jumped over.
 */
export function* findUnhandled(facts: Facts): Generator<Violation> {
  const trimmed = new Map<number, number>()
  const groups = new Map<string, Progress>()
  const progressOf = (queue: { group: string; queueId: number }) =>
    entryOf(groups, queueOf(queue), () => ({ upTo: 0, finished: new Set<number>() }))

  for (const event of facts.events) {
    if (event.type === 'trim') trimmed.set(event.queueId, Math.max(event.upTo, trimmed.get(event.queueId) ?? 0))
    if (event.type === 'handle-end' && event.outcome !== 'failed') progressOf(event).finished.add(event.offset)
    if (event.type === 'publish-stored') {
      const invoke = facts.events[event.op]
      for (const { failureOf } of invoke?.type === 'publish-invoke' ? invoke.messages : []) {
        if (failureOf) progressOf(failureOf).finished.add(failureOf.offset)
      }
    }
    if (event.type === 'pull-ok') {
      const { finished } = progressOf(event)
      const isHandled = facts.handlingGroups.has(event.group)
      for (const { offset, value } of event.messages) {
        if (!isHandled || mayBeDead(facts, event.group, value)) finished.add(offset)
      }
    }
    if (event.type === 'reset-invoke') {
      const progress = progressOf(event)
      progress.upTo = Math.max(progress.upTo, facts.resetOps.get(event.seq)?.offset ?? 0)
    }
    if (event.type === 'begins') progressOf(event).upTo = Math.max(progressOf(event).upTo, event.offset)
    if (event.type !== 'assignment-gained' && event.type !== 'commit-invoke') continue
    if (!isRecorded(facts, event.group) || !canMove(facts, event)) continue
    const progress = progressOf(event)
    extend(progress, trimmed.get(event.queueId) ?? 0)
    if (event.offset <= progress.upTo) continue
    const did = event.type === 'commit-invoke' ? 'committed' : 'was told'
    const missed = place(event.queueId, progress.upTo + 1)
    yield violation(
      'Q07',
      `${event.client} ${did} ${event.offset}, but group ${event.group} has not finished ${missed}`,
      event,
    )
    progress.upTo = event.offset
  }
}

/** Everything up to `upTo` is finished, and what is in `finished`. */
type Progress = { upTo: number; finished: Set<number> }

function extend(progress: Progress, trimmedUpTo: number) {
  for (;;) {
    if (progress.upTo < trimmedUpTo) progress.upTo = trimmedUpTo
    else if (progress.finished.has(progress.upTo + 1)) progress.upTo++
    else return
  }
}

/** A group of which only commits are recorded cannot be judged. */
function isRecorded(facts: Facts, group: string): boolean {
  return facts.handlingGroups.has(group) || facts.pullingGroups.has(group)
}

/** Refused and repeated commits move nothing; one of unknown outcome may. */
function canMove(facts: Facts, event: HistoryEvent): boolean {
  const outcome = facts.commits.get(event.seq)?.ok?.outcome
  return outcome === undefined || outcome === 'advanced'
}
