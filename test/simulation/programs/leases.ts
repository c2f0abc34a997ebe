import type { Held } from './recorder.ts'

/**
 * Watches that nobody is given a queue while the lease of another one lasts, by the world's own clock: a lease lasts for
 * so long at least from when it was asked for. What the checker of histories cannot see, since it knows no time.
 */
export type Leases = {
  claimed(client: string, held: Held, claim: { sentAtMs: number; nowMs: number; leaseMs: number }): void
  renewed(held: Held, renewal: { sentAtMs: number; leaseMs: number }): void
  /** From here on it may be somebody else's. */
  givenUp(held: Held): void
  /** Offsets were set: leases from before are worth nothing. */
  forgetAll(): void
  /** What was seen that must not be. */
  readonly violations: readonly string[]
  /** Clocks were set: nothing can be said any more. */
  stopWatching(): void
}

type Lease = { client: string; offsetVersion: number; untilMs: number }

/** @param toleranceMs a renewal that comes late, behind another one, sets the lease back by so much */
export function createLeases(toleranceMs: number): Leases {
  const violations: string[] = []
  const known = new Map<string, Lease>()
  let isOver = false
  const keyOf = ({ group, queueId }: Held) => `${queueId}/${group}`

  return {
    violations,
    claimed(client, held, { sentAtMs, nowMs, leaseMs }) {
      const key = keyOf(held)
      const { offsetVersion } = held
      const before = known.get(key)
      if (before && before.offsetVersion > offsetVersion) return
      if (before && !isOver && before.client !== client && nowMs < before.untilMs - toleranceMs) {
        const until = `${before.client}'s, until ${before.untilMs} ms`
        violations.push(`claim: ${client} was given ${key} at ${nowMs} ms, which was ${until}`)
      }
      known.set(key, { client, offsetVersion, untilMs: sentAtMs + leaseMs })
    },
    renewed(held, { sentAtMs, leaseMs }) {
      const lease = known.get(keyOf(held))
      if (lease?.offsetVersion === held.offsetVersion) lease.untilMs = Math.max(lease.untilMs, sentAtMs + leaseMs)
    },
    givenUp(held) {
      if (known.get(keyOf(held))?.offsetVersion === held.offsetVersion) known.delete(keyOf(held))
    },
    forgetAll: () => known.clear(),
    stopWatching() {
      isOver = true
    },
  }
}
