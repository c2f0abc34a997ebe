import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ttlDelayMs } from '../../core/log/boundaries.ts'
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
  /** Does what nobody else does here: deletes what is past retention for a day, and looks whether its place is still there. */
  upkeep(nowMs: number): Promise<void>
  close(): Promise<void>
}

/** Deletes so many batches at once: a greater number would keep everybody waiting. */
const trimAtOnce = 2_000

/** `onFailure` is called when nothing can be stored in the folder any more. */
export async function openFolder(folder: string, onFailure: (error: Error) => void): Promise<HostStore> {
  await mkdir(folder, { recursive: true })
  const unlock = lockFolder(folder)
  const file = join(folder, 'pmq.db')
  const store = openSqliteStore(file, { onFailure })
  const { ino } = await stat(file)
  return {
    store,
    compression: 'fast',
    place: folder,
    async upkeep(nowMs) {
      // The system keeps a deleted file for as long as it is open: what is written to it would be gone with the process.
      const isThere = await stat(file).then(
        found => found.ino === ino,
        () => false,
      )
      if (!isThere) return onFailure(new Error(`${file} was deleted or replaced while the host was running`))
      while ((await store.trim(nowMs - ttlDelayMs, trimAtOnce)) === trimAtOnce) {}
      while ((await store.removeEnded(nowMs, trimAtOnce)) === trimAtOnce) {}
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
  return { store, compression: 'small', place: endpoint, upkeep: async () => {}, close: () => store.close() }
}
