import { hashKey } from '../log/placement.ts'
import { createLru } from '../lru.ts'

/**
 * When a container looks at a group's lag. With a read for each queue this is what an idle fleet costs most: so a group is looked
 * at each minute while something happens in it, and else less and less often. A new container knows of none, and begins as if all
 * were idle: each group has its own minute.
 */
export type Looks = {
  /** `watchedMinutes`: somebody waits for what a look finds, so it is put off for no longer. */
  isDue(groupName: string, nowMs: number, watchedMinutes: number | undefined): boolean
  /** A look was made. */
  note(groupName: string, look: LookMade, nowMs: number): void
}

export type LookMade = {
  /** What would be another one if anything had happened. */
  state: string
  /** Something has happened lately, as far as one look can tell. */
  isInUse: boolean
  hasMembers: boolean
  /** The next look is in a minute. */
  isUrgent: boolean
  /** The next look is by then. */
  withinMs: number
}

/** With members, somebody waits for its messages; one without is looked at for its retention. */
const idleMinutes = 15
const abandonedMinutes = 60

const maxRemembered = 50_000
/** Ticks come a little early now and then. */
const toleranceMs = 5_000

export function createLooks(): Looks {
  const known = createLru<string, { state: string; gapMinutes: number; atMs: number }>(maxRemembered)
  return {
    isDue(groupName, nowMs, watchedMinutes) {
      const entry = known.get(groupName)
      // Of a time that is to come nothing is known: a clock was set back.
      if (!entry || entry.atMs > nowMs) return watchedMinutes !== undefined || isTurnOf(groupName, idleMinutes, nowMs)
      const gapMinutes = Math.min(entry.gapMinutes, watchedMinutes ?? entry.gapMinutes)
      return nowMs - entry.atMs >= gapMinutes * 60_000 - toleranceMs
    },
    note(groupName, { state, isInUse, hasMembers, isUrgent, withinMs }, atMs) {
      const before = known.get(groupName)
      const happens = before ? before.state !== state : isInUse
      const wanted = isUrgent || happens ? 1 : before ? before.gapMinutes * 2 : Number.POSITIVE_INFINITY
      const longest = Math.min(hasMembers ? idleMinutes : abandonedMinutes, Math.floor(withinMs / 60_000))
      known.set(groupName, { state, gapMinutes: Math.max(1, Math.min(wanted, longest)), atMs })
    },
  }
}

/** Spreads what is done once in so many minutes over them: each name has its own. */
export function isTurnOf(name: string, everyMinutes: number, nowMs: number): boolean {
  return Math.floor(nowMs / 60_000) % everyMinutes === hashKey(name) % everyMinutes
}
