import { DeleteItemCommand } from '@aws-sdk/client-dynamodb'
import type { Clock } from '../../core/protocol/clock.ts'
import type { Store } from '../../core/store.ts'
import { createClient } from '../../store/dynamo/client.ts'
import type { OnCapacity } from '../../store/dynamo/meter.ts'
import { openDynamoStore } from '../../store/dynamo/open.ts'
import { createTables, type TableNames } from '../../store/dynamo/tables.ts'
import type { RunningEngine } from './engines.ts'
import { type FaultOptions, type Faults, injectFaults } from './faults.ts'

export type TestStoreOptions = {
  /** Tables that exist already; new ones otherwise. */
  tables?: TableNames
  onCapacity?: OnCapacity
  clock?: Clock
  faults?: FaultOptions
}

export type TestStore = {
  store: Store
  tables: TableNames
  faults: Faults
  /** What TTL does, at any time and in no order. */
  deleteBatches(queueId: number, bases: readonly number[]): Promise<void>
  close(): Promise<void>
}

let tablesMade = 0

export function freshTableNames(): TableNames {
  const suffix = `${process.pid}_${++tablesMade}`
  return { logTable: `log_${suffix}`, registryTable: `registry_${suffix}` }
}

/** A client for an engine on this machine, which may take its time. Waiting for a connection counts as connecting. */
export const engineClient = (endpoint: string, maxConnections = 100) =>
  createClient({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    requestTimeoutMs: 60_000,
    connectTimeoutMs: 60_000,
    maxConnections,
  })

/** A store on an engine; its client meets faults only if some are asked for. */
export async function openTestStore(engine: RunningEngine, options: TestStoreOptions = {}): Promise<TestStore> {
  const { tables = freshTableNames(), onCapacity, clock } = options
  // The plain client serves what is not the store's own business.
  const plain = engineClient(engine.endpoint, engine.maxConnections)
  const client = engineClient(engine.endpoint, engine.maxConnections)
  const faults = injectFaults(client, options.faults ?? { seed: 0 })
  if (options.tables === undefined) await createTables(plain, tables)
  const store = openDynamoStore({
    client,
    ...tables,
    ...(onCapacity !== undefined && { onCapacity }),
    ...(clock !== undefined && { clock }),
  })
  return {
    store,
    tables,
    faults,
    async deleteBatches(queueId, bases) {
      for (const base of bases) {
        const Key = { q: { N: String(queueId) }, o: { N: String(base) } }
        await plain.send(new DeleteItemCommand({ TableName: tables.logTable, Key }))
      }
    },
    async close() {
      await store.close()
      plain.destroy()
    },
  }
}
