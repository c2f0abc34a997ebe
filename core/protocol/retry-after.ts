/** What `Retry-After` asks for, in milliseconds: it is a number of seconds or a date. Undefined: it is missing or neither. */
export function readRetryAfter(header: string | undefined, nowMs: number): number | undefined {
  if (!header) return undefined
  const seconds = Number(header)
  const waitMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - nowMs
  return Number.isFinite(waitMs) ? waitMs : undefined
}
