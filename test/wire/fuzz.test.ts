import { openOnEngine } from '../store/open-engine.ts'
import { dynoxide } from '../support/engines.ts'
import { fuzzSuite } from './fuzz.ts'

fuzzSuite('sqlite', { runs: 100 })

const engine = dynoxide()
fuzzSuite(`dynamo on ${engine.name}`, {
  async openStore() {
    const { store, close } = await openOnEngine(engine)
    return { ...store, close }
  },
  runs: 40,
  ...(engine.skip !== undefined && { skip: engine.skip }),
})
