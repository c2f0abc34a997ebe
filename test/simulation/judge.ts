import type { PublishResult } from '../../sdk/src/index.ts'
import { checkHistory } from '../checker/check.ts'
import type { HistoryEvent } from '../checker/history.ts'
import { explain } from '../checker/violation.ts'
import type { Cast } from './cast.ts'
import { findMisjudged } from './deaths.ts'
import type { GroupPlan, Plan } from './plan.ts'
import { findMiscounted } from './poison.ts'
import type { Program } from './programs/program.ts'
import type { KeyOrder } from './programs/sender.ts'
import { findRepeated } from './repeated.ts'
import type { World } from './world/world.ts'

/** Something that must not be: a violation of a promise, or a defect. */
export type Finding = { property: string; text: string }

export function judge(world: World, plan: Plan, { consumers, producers, leases }: Cast): Finding[] {
  const violations = checkHistory(world.history.events)
  return [
    ...world.defects.map(text => ({ property: 'defect', text })),
    ...violations.map(violation => ({ property: violation.property, text: explain([violation]) })),
    ...leases.violations.map(text => ({ property: 'claim', text })),
    ...world.recorder.delays.violations.slice(0, 5).map(text => ({ property: 'Q15', text })),
    ...producers.flatMap(({ keyOrder }) => findDisorder(keyOrder, changedTopics(world.history.events))),
    ...findMissed(consumers),
    ...(plan.isClean ? judgeClean(world.history.events, plan.groups) : []),
    ...(plan.outage ? findGivenUp(consumers) : []),
    ...(plan.isDeadly ? findMisjudged(world.history.events, plan.groups) : []),
  ]
}

function judgeClean(events: readonly HistoryEvent[], groups: readonly GroupPlan[]): Finding[] {
  const repeated = findRepeated(events, groups)
  return [...repeated.findings, ...findMiscounted(events, groups, repeated.excused)]
}

/** Nobody who lives is given up because the store, and not they, was away. */
function findGivenUp(consumers: readonly Program[]): Finding[] {
  const givenUp = consumers.filter(program => program.hasExpired?.() && !program.isReplaced?.())
  return givenUp.map(({ process }) => {
    return { property: 'outage', text: `outage: ${process.name} was given up, though nothing was wrong with it` }
  })
}

/** A consumer hears of every change without looking whether it has missed one. */
function findMissed(consumers: readonly Program[]): Finding[] {
  return consumers.flatMap(({ process, missed }) =>
    (missed?.() ?? []).map(names => {
      return { property: 'missed', text: `missed: ${process.name} had not been told of a change of ${names}` }
    }),
  )
}

/** P3 as the caller of the SDK sees it: messages of one key lie in the order in which they were given to `publish`. */
function findDisorder(keyOrder: KeyOrder, changed: ReadonlySet<string>): Finding[] {
  const findings: Finding[] = []
  for (const [key, sent] of keyOrder) {
    // A key of a topic whose queues have changed may lie in several, in the order of each.
    const mayMove = changed.has(key.replace(/\/.*/, ''))
    let last: (typeof sent)[0] | undefined
    for (const next of sent) {
      if (!next.place) continue
      if (last?.place && isAfter(last.place, next.place, mayMove)) {
        const text = `${key}: "${next.value}" was published after "${last.value}"; ${at(last.place)}, then ${at(next.place)}`
        findings.push({ property: 'P3/Q05', text })
      }
      last = next
    }
  }
  return findings
}

function isAfter(a: PublishResult, b: PublishResult, mayMove: boolean): boolean {
  return a.queueId === b.queueId ? a.offset >= b.offset : !mayMove
}

function changedTopics(events: readonly HistoryEvent[]): Set<string> {
  return new Set(events.flatMap(event => (event.type === 'queues-changed' ? [event.topic] : [])))
}

const at = ({ queueId, offset }: { queueId: number; offset: number }) => `queue ${queueId}, offset ${offset}`
