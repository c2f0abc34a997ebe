import { describe, test } from 'node:test'
import { churn } from './churn.ts'

describe('ten minutes of churn', () => {
  const places = {
    'one host that ticks every 5 s': { containers: 1, tickEverySeconds: 5, patienceSeconds: 45 },
    'many containers and a tick every minute': { containers: 4, tickEverySeconds: 60, patienceSeconds: 90 },
  }
  const failing = { containers: 3, tickEverySeconds: 20, patienceSeconds: 400, failures: 0.03 }
  for (let seed = 1; seed <= 5; seed++) {
    test(`give no queue two owners though operations fail or lose their answers, and all is well at last: ${seed}`, async t => {
      const { moves } = await churn({ seed, seconds: 600, ...failing })
      t.diagnostic(`${moves} versions`)
    })
  }

  for (const [name, place] of Object.entries(places)) {
    for (let seed = 1; seed <= 5; seed++) {
      test(`leave no queue without a living owner for long, and none with two: ${name}, ${seed}`, async t => {
        const { moves, longestSeconds } = await churn({ seed, seconds: 600, ...place })
        t.diagnostic(`${moves} versions; at most ${longestSeconds} s without an owner`)
      })
    }
  }
})
