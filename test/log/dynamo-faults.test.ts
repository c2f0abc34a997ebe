import assert from 'node:assert/strict'
import { after } from 'node:test'
import { openOnEngine } from '../store/open-engine.ts'
import { openTestStore, type TestStore } from '../support/dynamo-store.ts'
import { dynoxide } from '../support/engines.ts'
import type { FaultKind, FaultRates } from '../support/faults.ts'
import { logSuite } from './suite.ts'

/** One request in five goes wrong, each in a way of its own; one inconsistent read in three is stale. */
const rates: FaultRates = {
  throttle: 0.04,
  loseRequest: 0.04,
  loseAnswer: 0.04,
  serverError: 0.04,
  late: 0.04,
  stale: 0.3,
}
const engine = dynoxide()

for (const seed of [1, 2, 3]) {
  let faulty: TestStore | undefined
  logSuite(
    `dynamo with faults of seed ${seed}`,
    async () => {
      const opened = await openOnEngine(engine)
      const withFaults = await openTestStore(opened.running, { tables: opened.tables, faults: { seed, rates } })
      faulty = withFaults
      return {
        ...opened,
        async close() {
          await withFaults.close()
          await opened.close()
        },
      }
    },
    {
      publishes: 10,
      writersOnly: true,
      through: store => faulty?.store ?? store,
      ...(engine.skip !== undefined && { skip: engine.skip }),
    },
  )
  after(() => {
    if (engine.skip !== undefined) return
    for (const kind of Object.keys(rates) as FaultKind[]) {
      assert.ok((faulty?.faults.counts[kind] ?? 0) > 0, `no fault of the kind ${kind} has happened`)
    }
  })
}
