import assert from 'node:assert/strict'
import { test } from 'node:test'
import { playSeeds } from './pool.ts'

const seeds = Number(process.env.SIMULATION_SEEDS ?? 480)
/** Ten times what they take where nobody else is at work, and time to begin. */
const timeout = 60_000 + seeds * 300

test(`no promise is broken in ${seeds} simulated runs`, { timeout }, async t => {
  let events = 0
  const failures: string[] = []
  await playSeeds({
    from: 1,
    count: seeds,
    onReport({ seed, findings, events: seen }) {
      events += seen
      if (findings.length === 0) return false
      const texts = findings.slice(0, 3).map(({ text }) => text)
      failures.push([`seed ${seed} (npm run simulate -- --seed ${seed})`, ...texts].join('\n'))
      // More than three show nothing that these do not.
      return failures.length === 3
    },
  })
  assert.equal(failures.join('\n\n'), '')
  t.diagnostic(`${events} events`)
})
