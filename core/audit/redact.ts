import { limits } from '../protocol/limits.ts'

/**
 * Fields whose value is nobody's business in a log. Views leave such out already; this is for what somebody forgets. Names
 * that users give are never the name of a field in a view, so that a topic called `token` is not taken for one.
 */
const isSecret = (field: string) =>
  /secret|token|passw|credential|authorization|signature|(api|access|private)[-_]?key/i.test(field) ||
  /^(keys?|body|bodies|head)$/i.test(field)

export const redacted = '(not shown)'

/** What was sent or read, as JSON for the log: without secrets, and cut where it is too large, which it says then. */
export function toAuditText(value: unknown): string {
  const text = JSON.stringify(redact(value)) ?? 'null'
  const bytes = Buffer.byteLength(text)
  if (bytes <= limits.maxAuditTextBytes) return text
  return JSON.stringify({ cutFromBytes: bytes, text: beginning(text) })
}

function redact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redact)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  return Object.fromEntries(entries.map(([field, held]) => [field, show(field, held)]))
}

function show(field: string, held: unknown): unknown {
  // Which secret it is says nothing of it.
  if (isSecret(field) && field !== 'secretId') return redacted
  // Many a webhook's URL has its secret in the query.
  if (field === 'url' && typeof held === 'string') return held.replace(/\?.*$/s, `?${redacted}`)
  return redact(held)
}

/** As much as is sure to fit: as a text within JSON, each quote and backslash takes twice its room. */
function beginning(text: string): string {
  const room = Math.floor(limits.maxAuditTextBytes / 2) - 100
  const bytes = Buffer.from(text).subarray(0, room)
  // A character that was cut in half is dropped.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true })
}
