import { openOnEngine } from '../store/open-engine.ts'
import { engines } from '../support/engines.ts'
import { logSuite } from './suite.ts'

for (const engine of engines()) {
  logSuite(`dynamo on ${engine.name}`, () => openOnEngine(engine), {
    publishes: engine.name === 'moto' ? 4 : 15,
    ...(engine.skip !== undefined && { skip: engine.skip }),
  })
}
