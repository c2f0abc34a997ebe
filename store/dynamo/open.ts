import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { type Clock, systemClock } from '../../core/protocol/clock.ts'
import type { Store } from '../../core/store.ts'
import { createAlarms } from './alarms.ts'
import { createAudit } from './audit.ts'
import { createClaims } from './claims.ts'
import { createCommits } from './commits.ts'
import { createConsumers } from './consumers.ts'
import { createFailed } from './failed.ts'
import { createGroups } from './groups.ts'
import { createLog } from './log.ts'
import type { OnCapacity } from './meter.ts'
import { createOffsets } from './offsets.ts'
import { createRegistryContext } from './registry.ts'
import { createRequests } from './requests.ts'
import type { TableNames } from './tables.ts'
import { createTargets } from './targets.ts'
import { createTopics } from './topics.ts'

export type DynamoStoreOptions = TableNames & {
  /** As `createClient` makes it: one attempt per request. The store destroys it on `close`. */
  client: DynamoDBClient
  /** Hears what each request cost. Without it DynamoDB is not asked. */
  onCapacity?: OnCapacity
  /** @default the system's */
  clock?: Clock
  /** Numbers from 0 to 1, of at least 48 random bits: jitter, and marks that must not repeat. @default Math.random */
  random?: () => number
}

/** The store on DynamoDB: each operation is one conditional write or transaction whose clauses are the rule. */
export function openDynamoStore(options: DynamoStoreOptions): Store {
  const { client, logTable, registryTable, onCapacity, clock = systemClock, random = Math.random } = options
  const requests = createRequests({ client, clock, random, onCapacity })
  const registry = createRegistryContext(requests, registryTable, random)
  return {
    ...createLog({ requests, logTable }),
    ...createTopics(registry),
    ...createGroups(registry),
    ...createOffsets(registry),
    ...createCommits(registry),
    ...createClaims(registry),
    ...createConsumers(registry),
    ...createAlarms(registry),
    ...createAudit(registry),
    ...createFailed(registry),
    ...createTargets(registry),
    async close() {
      client.destroy()
    },
  }
}
