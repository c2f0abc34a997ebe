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
  /** A look was made. `state`: what would be another one if anything had happened. `isUrgent`: the next one is in a minute. */
  note(groupName: string, look: { state: string; hasMembers: boolean; isUrgent: boolean }, nowMs: number): void
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
    note(groupName, { state, hasMembers, isUrgent }, atMs) {
      const longest = hasMembers ? idleMinutes : abandonedMinutes
      const before = known.get(groupName)
      // The first look does not tell whether anything happens.
      const gapMinutes = !before ? longest : before.state === state ? Math.min(longest, before.gapMinutes * 2) : 1
      known.set(groupName, { state, gapMinutes: isUrgent ? 1 : gapMinutes, atMs })
    },
  }
}

/** Spreads what is done once in so many minutes over them: each name has its own. */
export function isTurnOf(name: string, everyMinutes: number, nowMs: number): boolean {
  return Math.floor(nowMs / 60_000) % everyMinutes === hashKey(name) % everyMinutes
}
