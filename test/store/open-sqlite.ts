import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../store/sqlite/database.ts'
import { createSqliteStore } from '../../store/sqlite/open.ts'
import type { ContractStore } from './contract.ts'

function openAt(path: string): ContractStore {
  const database = openDatabase(path)
  const store = createSqliteStore(database)
  return {
    store,
    deleteBatches: (queueId, bases) =>
      database.write(() => {
        const remove = database.writer.prepare('DELETE FROM log WHERE q = ? AND o = ?')
        for (const base of bases) remove.run(queueId, base)
      }),
    close: () => store.close(),
  }
}

export const openInMemory = async (): Promise<ContractStore> => openAt(':memory:')

export async function openOnDisk(): Promise<ContractStore> {
  const folder = await mkdtemp(join(tmpdir(), 'pmq-store-'))
  const opened = openAt(join(folder, 'pmq.db'))
  return {
    ...opened,
    async close() {
      await opened.close()
      await rm(folder, { recursive: true })
    },
  }
}
