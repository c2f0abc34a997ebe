import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CreateTableCommand, type DynamoDBClient, ResourceInUseException } from '@aws-sdk/client-dynamodb'
import type { Compression } from '../../core/log/encoding.ts'
import type { Store } from '../../core/store.ts'
import { createClient } from '../../store/dynamo/client.ts'
import { openDynamoStore } from '../../store/dynamo/open.ts'
import { tableDefinitions } from '../../store/dynamo/tables.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { lockFolder } from './lock.ts'

/** Where a host keeps everything: in a folder, or in any DynamoDB that it can reach. */
export type HostStore = {
  store: Store
  compression: Compression
  /** What to call the place in a message to the user. */
  place: string
  /** Does what TTL does, where nobody else does it. */
  trim(beforeMs: number): Promise<void>
  close(): Promise<void>
}

export async function openFolder(folder: string): Promise<HostStore> {
  await mkdir(folder, { recursive: true })
  const unlock = lockFolder(folder)
  const store = openSqliteStore(join(folder, 'pmq.db'))
  return {
    store,
    compression: 'fast',
    place: folder,
    async trim(beforeMs) {
      await store.trim(beforeMs)
    },
    async close() {
      await store.close()
      unlock()
    },
  }
}

export async function openDynamo(endpoint: string, tablePrefix: string): Promise<HostStore> {
  const client = createClient({ endpoint })
  const tables = { logTable: `${tablePrefix}-log`, registryTable: `${tablePrefix}-registry` }
  for (const definition of tableDefinitions(tables)) await createTable(client, definition)
  const store = openDynamoStore({ client, ...tables })
  return { store, compression: 'small', place: endpoint, trim: async () => {}, close: () => store.close() }
}

async function createTable(client: DynamoDBClient, definition: ConstructorParameters<typeof CreateTableCommand>[0]) {
  try {
    await client.send(new CreateTableCommand(definition))
  } catch (error) {
    if (!(error instanceof ResourceInUseException)) throw error
  }
}
