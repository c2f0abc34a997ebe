import type { AuditStore } from '../../core/audit/port.ts'
import { type AuditEntry, endOf } from '../../core/audit/records.ts'
import { keys } from '../keys.ts'
import type { Database } from './database.ts'
import type { Records } from './records.ts'

export function createAudit(database: Database, written: Records, durable: Records): AuditStore {
  return {
    addAuditEntry: entry =>
      database.write(() => {
        const key = keys.auditEntry(entry.entryId)
        if (!written.get(key)) written.put(key, entry, endOf(entry))
      }),

    endAuditEntry: (entryId, end) =>
      database.write(() => {
        const key = keys.auditEntry(entryId)
        const entry = written.get<AuditEntry>(key)
        if (!entry) return 'unknown_entry'
        written.put(key, { ...entry, ...end }, endOf(entry))
        return 'ended'
      }),

    listAuditEntries: ({ month, below, limit }) =>
      database.read(() => {
        const entries = durable.listDown<AuditEntry>(keys.auditPartition(month), below, limit)
        return { entries, hasMore: entries.length === limit }
      }),
  }
}
