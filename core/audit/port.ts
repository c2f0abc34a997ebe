import type { ActEnd, AuditEntry } from './records.ts'

/** The audit log as the core asks for it: entries in partitions of a month each, in order of their ids. */
export interface AuditStore {
  /** Records an act before it is done. Repeating it changes nothing. */
  addAuditEntry(entry: AuditEntry): Promise<void>
  /** Records what became of an act. */
  endAuditEntry(entryId: string, end: ActEnd): Promise<'ended' | 'unknown_entry'>
  /**
   * Entries of a month, newest first, whose ids are below a bound; at most `limit`, and fewer where they are large: `hasMore`
   * says whether there are others. They may be there for some time after their end.
   */
  listAuditEntries(page: AuditPage): Promise<{ entries: AuditEntry[]; hasMore: boolean }>
}

export type AuditPage = { month: string; below: string; limit: number }
