import * as v from 'valibot'
import { PmqError } from '../../core/protocol/errors.ts'

/** What a schema makes of an input; a refusal that names the first fault, if there is one. */
export function validate(schema: v.GenericSchema, input: unknown): unknown {
  // The first fault ends it: a request of some megabytes may have millions, which would not fit into memory.
  const result = v.safeParse(schema, input, { abortEarly: true })
  if (result.success) return result.output
  throw new PmqError('bad_request', explain(result.issues[0]))
}

const maxPathLength = 200
/** Checks whose found value is a number or a length; what others have found may be a part of a message. */
const numericChecks = new Set(['max_length', 'max_entries', 'min_value', 'max_value', 'safe_integer'])

/** The keys of a map are its sender's, as its values are. */
const nameOf = (item: v.IssuePathItem) => (item.type === 'unknown' ? '*' : String(item.key))

/** What is wrong where; without what a message held, which is nobody's business in an error text. */
function explain(issue: v.BaseIssue<unknown>): string {
  const keys = issue.path?.map(nameOf).join('.') || 'the body'
  const path = keys.length > maxPathLength ? `${keys.slice(0, maxPathLength)}…` : keys
  const isUnknown = issue.type === 'strict_object' && issue.expected === 'never'
  if (isUnknown) return `${path}: no such field`
  const isMissing = issue.kind === 'schema' && issue.path?.at(-1)?.origin === 'key'
  if (isMissing) return `${path}: is required`
  if (issue.type === 'regex') return `${path}: ${issue.message}`
  const expected = issue.type === 'safe_integer' ? 'a whole number' : issue.expected
  return `${path}: expected ${expected}${numericChecks.has(issue.type) ? `, not ${issue.received}` : ''}`
}
