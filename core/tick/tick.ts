import type { Core } from '../core.ts'
import { StoreError } from '../store.ts'
import { lookAfterGroups } from './groups.ts'
import { lookAtLag } from './lag.ts'
import { removeNewcomers } from './newcomers.ts'
import { emptyReport, type TickReport } from './report.ts'
import { lookAfterTopics } from './topics.ts'
import { createTurns } from './turns.ts'

/** What a function has that is called every minute, without the time in which it ends. */
const usualBudgetMs = 45_000

/**
 * What happens without a caller, every minute: gives up dead members, finishes rebalances that were asked for, once an hour
 * records how far each queue reaches, looks at what waits for groups and raises alarms of it, and tells targets again what they
 * were not told. Everything here may run twice at once, and end anywhere.
 *
 * What others wait for comes first. Of what does not fit into `budgetMs` the next ticks do the rest: only what was lost waits for that,
 * since members that change ask by themselves.
 */
export async function tick(core: Core, budgetMs = usualBudgetMs): Promise<TickReport> {
  const report = emptyReport()
  const turns = createTurns(core, report, budgetMs)
  await turns.attempt('groups', () => lookAfterGroups(core, report, turns))
  // Where the store fails, nobody was heard; a defect that keeps one group from its turn says nothing of the others.
  if (report.failed.some(({ cause }) => cause instanceof StoreError)) core.silences.forgetAll()
  await turns.attempt('newcomers', () => removeNewcomers(core))
  await turns.attempt('topics', () => lookAfterTopics(core, report, turns))
  await turns.attempt('lag', () => lookAtLag(core, report, turns))
  return report
}
