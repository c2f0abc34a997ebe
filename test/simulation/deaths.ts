import { groupOf } from '../checker/facts.ts'
import type { HistoryEvent } from '../checker/history.ts'
import type { Finding } from './judge.ts'
import type { GroupPlan } from './plan.ts'
import { count } from './poison.ts'
import { isKiller } from './programs/fates.ts'

/**
 * Where nothing goes wrong but that messages end processes: each of those that do is one dead letter, after two processes
 * for each time that it may be handled; some more where the first one was far ahead of what was recorded, or others that
 * end processes were in hand as well. No other message is a dead letter, though one that was on trial may count as failed
 * once, where a message of another queue that is worked on as usual ends their process.
 */
export function findMisjudged(events: readonly HistoryEvent[], groups: readonly GroupPlan[]): Finding[] {
  const findings: Finding[] = []
  for (const { name, failures } of groups) {
    const { retryCount: retries = 0, retryInPlace } = failures?.settings ?? {}
    const isOf = ({ group }: { group: string }) => groupOf(group) === name
    const started = count(events.flatMap(event => (event.type === 'handle-start' && isOf(event) ? event.value : [])))
    const pulled = new Set(
      events.flatMap(event => (event.type === 'pull-ok' ? event.messages.map(({ value }) => value) : [])),
    )
    const failed = count([...pulled].filter(value => value.startsWith(`${name}_`) && value.includes('_fail#')))
    // How many more that may be is not known exactly; far fewer than where it goes on for ever.
    const most = (retryInPlace ? 10 : 5) * (retries + 1)
    for (const [body, deaths] of started) {
      const times = failed.get(body) ?? 0
      if (!isKiller(failures, name, body)) {
        if (times > (retryInPlace ? 0 : retries)) tell(`"${body}", which ends no process, is a dead letter`)
      } else if (times !== (retryInPlace ? 1 : retries + 1)) {
        tell(`"${body}" is ${times} times in the fail topic: ${retries} retries`)
      } else if (deaths > most) {
        tell(`"${body}" has ended ${deaths} processes, ${most} at most: ${retries} retries`)
      }
    }

    function tell(text: string) {
      findings.push({ property: 'deaths', text: `deaths: group ${name}: ${text}` })
    }
  }
  return findings.slice(0, 5)
}
