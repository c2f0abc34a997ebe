import type { Core } from '../core.ts'
import type { AuditEntryView, AuditView, ListAuditRequest } from '../protocol/audit.ts'
import { limits } from '../protocol/limits.ts'
import { type AuditEntry, boundOf, monthOf, startOf, timeOf } from './records.ts'

/** For so much a request may ask the store: enough for the months that are kept, and a filter that finds nothing. */
const maxReads = 20
const entriesPerRead = 100
/** Half of what a Lambda may answer with, for what JSON within JSON takes. */
const maxAnswerBytes = 2 * 1024 * 1024
/** Clocks of others may be ahead of this one. */
const aheadMs = 3_600_000

/**
 * Who did what, newest first. A request reads a bounded number of entries; `next` is where another one goes on, also
 * where this one has found nothing.
 */
export async function listAudit(core: Core, request: ListAuditRequest): Promise<AuditView> {
  const { limit, fromMs = 0, toMs, after } = request
  const nowMs = core.clock.now()
  const oldestMs = Math.max(fromMs, nowMs - limits.auditKeptMs)
  const newest = boundOf(toMs ?? nowMs + aheadMs)
  const found: AuditEntryView[] = []
  let bytes = 0
  let below = after !== undefined && after < newest ? after : newest
  for (let reads = 0; reads < maxReads; reads++) {
    const month = monthBelow(below)
    const page = await core.store.listAuditEntries({ month, below, limit: entriesPerRead })
    for (const entry of page.entries) {
      if (entry.askedAtMs < oldestMs) return { entries: found }
      below = entry.entryId
      if (!matches(entry, request)) continue
      found.push(toView(entry))
      bytes += sizeOf(entry)
      if (found.length === limit || bytes >= maxAnswerBytes) return { entries: found, next: below }
    }
    if (page.hasMore) continue
    below = boundOf(startOf(month))
    if (startOf(month) <= oldestMs) return { entries: found }
  }
  return { entries: found, next: below }
}

/** The month of the newest entry that may be below a bound. A bare time is below all entries of that time. */
const monthBelow = (below: string) => monthOf(Math.max(0, timeOf(below) - (below === boundOf(timeOf(below)) ? 1 : 0)))

const matches = (entry: AuditEntry, { entity, who, act }: ListAuditRequest) =>
  entry.entity === (entity ?? entry.entity) && entry.who === (who ?? entry.who) && entry.act === (act ?? entry.act)

const sizeOf = ({ parameters, request = '', before = '', after = '' }: AuditEntry) =>
  Buffer.byteLength(parameters) + Buffer.byteLength(request) + Buffer.byteLength(before) + Buffer.byteLength(after)

function toView({ parameters, request, before, after, ...entry }: AuditEntry): AuditEntryView {
  return {
    ...entry,
    parameters: JSON.parse(parameters),
    ...(request !== undefined && { request: JSON.parse(request) }),
    ...(before !== undefined && { before: JSON.parse(before) }),
    ...(after !== undefined && { after: JSON.parse(after) }),
  }
}
