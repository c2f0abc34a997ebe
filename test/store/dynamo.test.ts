import { engines } from '../support/engines.ts'
import { storeContract } from './contract.ts'
import { openOnEngine } from './open-engine.ts'

for (const engine of engines()) {
  storeContract(`dynamo on ${engine.name}`, () => openOnEngine(engine), {
    // moto is some ten times slower than the others, and copies its tables for each transaction.
    sequences: engine.name === 'moto' ? 5 : 60,
    ...(engine.skip !== undefined && { skip: engine.skip }),
  })
}
