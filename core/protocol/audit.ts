import * as v from 'valibot'
import { text, wholeNumber } from './fields.ts'
import { limits } from './limits.ts'

export const listAuditRequest = v.strictObject({
  /** Only acts on this: `topic:` or `group:` and a name. */
  entity: v.optional(text(400)),
  /** Only acts of this caller, as entries name it. */
  who: v.optional(text(2048)),
  /** Only these acts: the name of an operation, such as `resetOffsets`. */
  act: v.optional(text(100)),
  /** Only acts from this time on, in milliseconds since 1970. */
  fromMs: v.optional(wholeNumber(0, limits.maxTimeMs)),
  /** Only acts before this time. */
  toMs: v.optional(wholeNumber(0, limits.maxTimeMs)),
  /** What an earlier answer named as `next`: go on there. */
  after: v.optional(
    v.pipe(v.string(), v.regex(/^\d{16}(-[\x21-\x7e]{1,100})?$/, 'must be what an answer named as next')),
  ),
  /** How many entries at most. Default 50. */
  limit: v.optional(wholeNumber(1, limits.maxAuditEntries), 50),
})

/** What is cut where it is too large is `{ cutFromBytes, text }`: how large it was, and its beginning. */
const shown = v.optional(v.unknown())

export const auditEntryView = v.object({
  entryId: v.string(),
  askedAtMs: wholeNumber(),
  /** An ARN of IAM; `local` on one machine; `service`: nobody asked for it; `unknown`: the request did not say. */
  who: v.string(),
  ip: v.string(),
  /** The operation. */
  act: v.string(),
  /** What it was about. */
  entity: v.string(),
  /** What the request's path named. */
  parameters: v.unknown(),
  /** Absent: it had none. */
  request: shown,
  /** `asked`: it is being done, or what became of it is not known. `failed`: by our fault, perhaps half-way. */
  outcome: v.picklist(['asked', 'done', 'refused', 'failed']),
  /** The code of the error that its caller was answered with. */
  code: v.optional(v.string()),
  endedAtMs: v.optional(wholeNumber()),
  /** `null`: it was not there. */
  before: shown,
  /** Absent: it is not known. */
  after: shown,
})
export const auditView = v.object({
  /** Newest first. */
  entries: v.array(auditEntryView),
  /** Absent: there are no older ones. */
  next: v.optional(v.string()),
})

export type ListAuditRequest = v.InferOutput<typeof listAuditRequest>
export type AuditEntryView = v.InferOutput<typeof auditEntryView>
export type AuditView = v.InferOutput<typeof auditView>
