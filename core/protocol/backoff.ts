/** How long to wait before another try: exponential between `baseMs` and `maxMs`. */
export type Backoff = { baseMs: number; maxMs: number }

/**
 * Full jitter: a random wait between 0 and `min(maxMs, baseMs * 2^retry)` milliseconds. Callers that lost to each
 * other spread out instead of meeting again. `retry` counts from 0.
 */
export function fullJitterMs(backoff: Backoff, retry: number, random: () => number): number {
  return random() * Math.min(backoff.maxMs, backoff.baseMs * 2 ** retry)
}
