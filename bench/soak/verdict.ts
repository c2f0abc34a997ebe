import { checkHistory } from '../../test/checker/check.ts'
import type { HistoryEvent } from '../../test/checker/history.ts'
import { explain } from '../../test/checker/violation.ts'
import { countHandles, type Sample } from './sample.ts'
import { fitSlope } from './slope.ts'

/** What was seen of a soak. */
export type Seen = {
  lastsMs: number
  maxKbPerMinute: number
  /** While things came and went, without those of the beginning; and the very last one. */
  samples: readonly Sample[]
  lastSample: Sample | undefined
  events: readonly HistoryEvent[]
  warnings: readonly string[]
  defects: readonly string[]
  /** How often things have come, and what the SDK told of. */
  tallies: Record<string, number>
}

/** From how long on the slope counts: at the beginning a process still fills what it then keeps. */
const shortestJudgedMs = 300_000

/** Prints the figures, and what is wrong. True: nothing is. */
export function judge(seen: Seen): boolean {
  const { samples, lastSample, events, warnings, defects } = seen
  const slopeOf = (size: (sample: Sample) => number) =>
    fitSlope(samples.map(sample => ({ x: sample.atMs / 60_000, y: size(sample) / 1024 })))
  const objects = slopeOf(({ objectBytes }) => objectBytes)
  const violations = checkHistory(events, { maxPerRule: 1_000 })
  const published = events.flatMap(event => (event.type === 'publish-ok' ? event.placed : []))
  const handles = samples.map(countHandles)
  console.table({
    'objects, KB a minute': show(objects),
    'compiled code, KB a minute': show(slopeOf(({ codeBytes }) => codeBytes)),
    'buffers, KB a minute': show(slopeOf(({ externalBytes }) => externalBytes)),
    'objects under churn, MB': range(samples.map(({ objectBytes }) => objectBytes / 2 ** 20)),
    'objects in the end, MB': lastSample && (lastSample.objectBytes / 2 ** 20).toFixed(1),
    samples: samples.length,
    'handles under churn': `${Math.min(...handles)} to ${Math.max(...handles)}`,
    'handles in the end': JSON.stringify(lastSample?.handles),
    warnings: warnings.length,
    'messages published': new Set(published.map(({ value }) => value)).size,
    'messages handled': events.filter(({ type }) => type === 'handle-end').length,
    lost: violations.filter(({ property }) => property === 'P1/Q01').length,
    'promises broken': violations.length,
    ...seen.tallies,
  })

  // By more than chance makes of it.
  const hasGrown = seen.lastsMs >= shortestJudgedMs && objects.slope - 2 * objects.error > seen.maxKbPerMinute
  const wrong = [
    ...(hasGrown ? [`objects grow by more than ${seen.maxKbPerMinute} KB a minute`] : []),
    ...new Set(warnings),
    ...defects,
    ...(violations.length > 0 ? [explain(violations.slice(0, 10))] : []),
  ]
  for (const text of wrong) console.log(text)
  return wrong.length === 0
}

const show = ({ slope, error }: { slope: number; error: number }) => `${slope.toFixed(1)} ± ${error.toFixed(1)}`

const range = (values: number[]) => `${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)}`
