import { groupOf } from '../checker/facts.ts'
import type { HistoryEvent } from '../checker/history.ts'
import type { Finding } from './judge.ts'
import type { GroupPlan } from './plan.ts'
import { isPoison } from './programs/fates.ts'
import { bodyOf } from './programs/recorder.ts'

/**
 * Q10. Where nothing goes wrong and everything is drained, a message that always fails has been handled once and as often
 * again as the group retries, and lies in the fail topic as one dead letter. (Elsewhere each of those times may be repeated,
 * as often as what was not committed is handed out again; the checker judges each assignment for itself.)
 *
 * @param repeated groups that have handled messages again which had gone ahead of others
 */
export function findMiscounted(
  events: readonly HistoryEvent[],
  groups: readonly GroupPlan[],
  repeated: ReadonlySet<string>,
): Finding[] {
  const findings: Finding[] = []
  for (const { name, failures } of groups) {
    const retries = failures?.settings.retryCount
    if (failures === undefined || retries === undefined || failures.isChanged) continue
    const handled = count(
      events.flatMap(event => (event.type === 'handle-start' && isOf(name, event) ? event.value : [])),
    )
    const letters = count(
      events.flatMap(event => (event.type === 'pull-ok' && event.client === 'auditor' ? namesOf(event) : [])),
    )
    for (const [body, times] of handled) {
      if (!isPoison(failures, name, body)) continue
      const dead = letters.get(body) ?? 0
      // In place each owner of the queue begins to count anew, also with what was done behind one that waited.
      const mayBeMore = failures.settings.retryInPlace || repeated.has(name)
      const isHandled = mayBeMore ? times > retries : times === retries + 1
      const isDead = mayBeMore ? dead > 0 : dead === 1
      if (isHandled && isDead) continue
      const text = `group ${name} handled "${body}" ${times} times and has ${dead} dead letters of it: ${retries} retries`
      findings.push({ property: 'P7/Q10', text: `P7/Q10: ${text}, and nothing went wrong` })
    }

    function namesOf({ messages }: Extract<HistoryEvent, { type: 'pull-ok' }>): string[] {
      const isDead = (value: string) => value.startsWith(`${name}_`) && value.includes(`_fail#${(retries ?? 0) + 1}/`)
      return messages.map(({ value }) => value).filter(isDead)
    }
  }
  return findings.slice(0, 5)
}

const isOf = (groupName: string, { group }: { group: string }) => groupOf(group) === groupName

/** How often each body comes. */
export function count(values: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(bodyOf(value), (counts.get(bodyOf(value)) ?? 0) + 1)
  return counts
}
