import type { Store } from '../../core/store.ts'
import { createAlarms } from './alarms.ts'
import { createAudit } from './audit.ts'
import { createConsumers } from './consumers.ts'
import { type Database, type DatabaseOptions, openDatabase } from './database.ts'
import { createFailed } from './failed.ts'
import { createGroups } from './groups.ts'
import { createLog } from './log.ts'
import { createRecords } from './records.ts'
import { createTargets } from './targets.ts'
import { createTopics } from './topics.ts'

export type SqliteStore = Store & {
  /** DynamoDB's TTL, by hand: deletes batches whose retention ended before `beforeMs`, at most `limit`; returns how many. */
  trim(beforeMs: number, limit: number): Promise<number>
  /** The same for records of the registry that were to be kept until `nowMs` at most. */
  removeEnded(nowMs: number, limit: number): Promise<number>
}

/** Opens the store in a file, or in memory with `':memory:'`. One process at a time may have a file open. */
export const openSqliteStore = (path: string, options: DatabaseOptions = {}): SqliteStore =>
  createSqliteStore(openDatabase(path, options))

export function createSqliteStore(database: Database): SqliteStore {
  const written = createRecords(database.writer)
  const durable = createRecords(database.reader)
  return {
    ...createLog(database, written),
    ...createTopics(database, written, durable),
    ...createGroups(database, written, durable),
    ...createConsumers(database, written, durable),
    ...createAlarms(database, written, durable),
    ...createAudit(database, written, durable),
    ...createFailed(database, written, durable),
    ...createTargets(database, written, durable),
    removeEnded: (nowMs, limit) => database.write(() => written.removeEnded(nowMs, limit)),
    close: async () => database.close(),
  }
}
