import type { Store } from '../../core/store.ts'
import { createConsumers } from './consumers.ts'
import { type Database, openDatabase } from './database.ts'
import { createGroups } from './groups.ts'
import { createLog } from './log.ts'
import { createRecords } from './records.ts'
import { createTopics } from './topics.ts'

export type SqliteStore = Store & {
  /** Deletes batches from the head of each queue whose retention ended before `beforeMs`. DynamoDB's TTL, by hand. */
  trim(beforeMs: number): Promise<number>
}

/** Opens the store in a file, or in memory with `':memory:'`. One process at a time may have a file open. */
export const openSqliteStore = (path: string): SqliteStore => createSqliteStore(openDatabase(path))

export function createSqliteStore(database: Database): SqliteStore {
  const written = createRecords(database.writer)
  const durable = createRecords(database.reader)
  return {
    ...createLog(database),
    ...createTopics(database, written, durable),
    ...createGroups(database, written, durable),
    ...createConsumers(database, written, durable),
    close: async () => database.close(),
  }
}
