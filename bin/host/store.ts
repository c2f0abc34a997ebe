import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Compression } from '../../core/log/encoding.ts'
import type { Store } from '../../core/store.ts'
import { createClient } from '../../store/dynamo/client.ts'
import { openDynamoStore } from '../../store/dynamo/open.ts'
import { createTables } from '../../store/dynamo/tables.ts'
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

/** An endpoint on this machine asks for no real region and credentials, but the client does. */
const nobody = { region: 'us-east-1', credentials: { accessKeyId: 'pmq', secretAccessKey: 'pmq' } }

export async function openDynamo(endpoint: string, tablePrefix: string, env: NodeJS.ProcessEnv): Promise<HostStore> {
  const client = createClient({ endpoint, ...(env.AWS_ACCESS_KEY_ID === undefined && nobody) })
  const tables = { logTable: `${tablePrefix}-log`, registryTable: `${tablePrefix}-registry` }
  await createTables(client, tables)
  const store = openDynamoStore({ client, ...tables })
  return { store, compression: 'small', place: endpoint, trim: async () => {}, close: () => store.close() }
}
