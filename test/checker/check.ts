import { gatherFacts } from './facts.ts'
import type { HistoryEvent } from './history.ts'
import { findAborted } from './rules/aborted.ts'
import { findDisagreements } from './rules/agree.ts'
import { findBackwards } from './rules/backwards.ts'
import { findHoles } from './rules/dense.ts'
import { findDuplicates } from './rules/duplicate.ts'
import { findUnfenced } from './rules/fenced.ts'
import { findHandledThoughFiltered } from './rules/filtered.ts'
import { findOutOfTurn } from './rules/hand-order.ts'
import { findHandledOutOfTurn } from './rules/in-hand.ts'
import { findLateGaps } from './rules/late-gap.ts'
import { findLost } from './rules/lost.ts'
import { findTwoOwners } from './rules/owner.ts'
import { findMiscounted } from './rules/retries.ts'
import { findMisordered } from './rules/send-order.ts'
import { findUnhandled } from './rules/unhandled.ts'
import { findUnstored } from './rules/unstored.ts'
import type { Rule, Violation } from './violation.ts'

/**
 * Judges a history (`history.ts`) as Jepsen does: from outside, by what clients saw, without a view of the store.
 *
 *   P1/Q01  nothing acknowledged is lost to a group        P4      commits go forward, and older owners are fenced
 *   P2      offsets have no hole, no reuse, no skip        P5/Q06  an offsetVersion belongs to one consumer
 *   Q02     nothing is read that was not sent, or failed   P8      a publishId is stored once
 *   P7/Q10  a failed message is stored, and counted        Q18     what is not for a group it does not handle
 *   Q03     one offset, one value, for everybody           Q07     no commit passes an unhandled message
 *   Q04     nothing appears below what was readable        P3/Q05  order of sending, order of handing out
 *
 * In a test: make a `createHistory`, record every call around it, end with `drained` for each group that caught up
 * (only then is what nobody read a loss), and `assert.equal(explain(checkHistory(history.events)), '')`.
 * A rule speaks only if no run that keeps the promise could look so: operations that overlap are in no order, and one
 * without an outcome may have happened or not. What a test does not record is not judged: no groups, no rules on groups.
 */
export function checkHistory(events: readonly HistoryEvent[], options: Partial<CheckOptions> = {}): Violation[] {
  const { maxPerRule } = { ...defaultOptions, ...options }
  const facts = gatherFacts(events)
  return rules.flatMap(rule => take(rule(facts), maxPerRule))
}

export type CheckOptions = {
  /** Violations that one rule reports before it stops. @default 5: the first ones tell the story. */
  maxPerRule: number
}

const defaultOptions: CheckOptions = { maxPerRule: 5 }

const rules: Rule[] = [
  findLost,
  findHoles,
  findAborted,
  findDisagreements,
  findLateGaps,
  findMisordered,
  findOutOfTurn,
  findBackwards,
  findUnfenced,
  findTwoOwners,
  findDuplicates,
  findUnhandled,
  findUnstored,
  findMiscounted,
  findHandledOutOfTurn,
  findHandledThoughFiltered,
]

function take(violations: Iterable<Violation>, count: number): Violation[] {
  const taken: Violation[] = []
  for (const violation of violations) {
    if (taken.push(violation) === count) break
  }
  return taken
}
