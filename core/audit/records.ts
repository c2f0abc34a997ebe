import { limits } from '../protocol/limits.ts'

/** Who asked for an act, and from where. */
export type Caller = {
  /** An ARN of IAM; `local` on one machine; `service`: nobody did; `unknown`: the request does not say. */
  who: string
  ip: string
}

/**
 * What became of an act. `asked`: it is being done, or whoever did it died, and what became of it is not known. `refused`:
 * nothing was done, or what was begun is to be finished by asking again. `failed`: by our fault, perhaps half-way.
 */
export type ActOutcome = 'asked' | 'done' | 'refused' | 'failed'

/** One administrative act. What it was asked with, and what was there before and after it, are JSON texts of bounded size. */
export type AuditEntry = Caller & {
  /** When it was asked for, and chance: in order of time, and unique. */
  entryId: string
  askedAtMs: number
  /** Name of the endpoint. */
  act: string
  /** What it was about, such as `group:billing`. */
  entity: string
  /** Of the path, such as the queue. */
  parameters: string
  request?: string
  outcome: ActOutcome
  /** Why it was refused or failed, as the caller was told. */
  code?: string
  endedAtMs?: number
  /** `null`: there was nothing. Absent: it is not known. */
  before?: string
  after?: string
}

export type ActEnd = Pick<AuditEntry, 'outcome' | 'code' | 'endedAtMs' | 'after'>

const digits = (timeMs: number) => String(timeMs).padStart(16, '0')

export const entryIdOf = (askedAtMs: number, chance: string) => `${digits(askedAtMs)}-${chance}`

/** What all ids from this time on are not below. */
export const boundOf = digits

/** The time of an id, or of a bound. */
export const timeOf = (entryId: string): number => Number(entryId.slice(0, 16))

/** By UTC, such as `2026-12`: entries are kept together by month, and found by going from month to month. */
export const monthOf = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 7)

export const startOf = (month: string): number => Date.parse(`${month}-01T00:00:00Z`)

/** Until when an entry is kept. */
export const endOf = ({ askedAtMs }: Pick<AuditEntry, 'askedAtMs'>): number => askedAtMs + limits.auditKeptMs
