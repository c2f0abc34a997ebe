import { type Facts, queueOf } from '../facts.ts'
import type { EventOf } from '../history.ts'
import { entryOf } from '../lookup.ts'
import { type Violation, violation } from '../violation.ts'

/**
 * P4, forward only. Under one offsetVersion a commit that advanced is above every one that had been answered before it
 * began, and no two reach the same offset. Under a higher offsetVersion, commits, and what a new owner is told, are
 * above all that advanced under lower ones, whenever that was: the versions are the order. A reset in between excuses.
 */
export function* findBackwards(facts: Facts): Generator<Violation> {
  const queues = new Map<string, Step[]>()
  for (const event of facts.events) {
    const step = stepOf(facts, event)
    if (step) entryOf(queues, queueOf(step.event), () => []).push(step)
  }
  for (const steps of queues.values()) {
    yield* findWithinVersion(steps)
    yield* findAcrossVersions(facts, steps)
  }
}

/** At some time after `startSeq` and before `endSeq` a group's offset was `event.offset`. */
type Step = { event: EventOf<'commit-invoke' | 'assignment-gained'>; startSeq: number; endSeq: number }

function stepOf(facts: Facts, event: Facts['events'][number]): Step | undefined {
  // An owner may be told late, when what he is told is no longer so.
  if (event.type === 'assignment-gained') return { event, startSeq: -1, endSeq: event.seq }
  const ok = facts.commits.get(event.seq)?.ok
  if (event.type === 'commit-invoke' && ok?.outcome === 'advanced')
    return { event, startSeq: event.seq, endSeq: ok.seq }
}

function* findWithinVersion(steps: readonly Step[]): Generator<Violation> {
  const versions = new Map<number, Step[]>()
  for (const step of steps) {
    if (step.event.type === 'commit-invoke') entryOf(versions, step.event.offsetVersion, () => []).push(step)
  }
  for (const begun of versions.values()) {
    const answered = begun.toSorted((a, b) => a.endSeq - b.endSeq)
    const reached = new Map<number, Step>()
    let highest: Step | undefined
    let next = 0
    for (const later of begun) {
      for (let step = answered[next]; step && step.endSeq < later.event.seq; step = answered[++next]) {
        if (!highest || step.event.offset > highest.event.offset) highest = step
      }
      const same = entryOf(reached, later.event.offset, () => later)
      if (highest && later.event.offset <= highest.event.offset) yield backwards(highest, later)
      else if (same !== later) yield backwards(same, later)
    }
  }
}

function* findAcrossVersions(facts: Facts, steps: readonly Step[]): Generator<Violation> {
  const versions = new Map<number, Step[]>()
  for (const step of steps) entryOf(versions, step.event.offsetVersion, () => []).push(step)
  let highest: Step | undefined
  for (const version of [...versions.keys()].sort((a, b) => a - b)) {
    const ofVersion = versions.get(version) ?? []
    for (const later of ofVersion) {
      const least = highest && highest.event.offset + (later.event.type === 'commit-invoke' ? 1 : 0)
      if (!highest || least === undefined || later.event.offset >= least) continue
      if (isResetBetween(facts, highest, later)) highest = undefined
      else yield backwards(highest, later)
    }
    for (const step of ofVersion) if (!highest || step.event.offset > highest.event.offset) highest = step
  }
}

/** By its offsetVersion if that is known, else by time. */
function isResetBetween(facts: Facts, { event: before, startSeq }: Step, { event: after, endSeq }: Step): boolean {
  const resets = facts.resets.get(queueOf(after)) ?? []
  return resets.some(({ invoke, endSeq: resetEnd, offsetVersion }) => {
    if (offsetVersion === undefined) return invoke.seq < endSeq && resetEnd > startSeq
    return before.offsetVersion < offsetVersion && offsetVersion <= after.offsetVersion
  })
}

function backwards(before: Step, after: Step): Violation {
  const { group, queueId } = after.event
  const was = `at ${before.event.offset} under offsetVersion ${before.event.offsetVersion}`
  const is = `${after.event.offset} under offsetVersion ${after.event.offsetVersion}`
  const did = after.event.type === 'commit-invoke' ? `advanced to` : 'was told as'
  const seen = `group ${group}, queue ${queueId}: the offset was ${was}, then ${did} ${is}`
  return violation('P4', seen, before.event, after.event)
}
