import { hashKey } from '../log/placement.ts'
import { createLru } from '../lru.ts'

/**
 * When a container looks at a group's lag. With a read for each queue this is what an idle fleet costs most: so a group is looked
 * at each minute while something happens in it, and else less and less often. A new container knows of none, and begins as if all
 * were idle: each group has its own minute.
 */
export type Looks = {
  isDue(groupName: string, nowMs: number): boolean
  /** No look is remembered: whom somebody watches is looked at now. */
  isUnknown(groupName: string): boolean
  /** A look was made. `state`: what would be another one if anything had happened. `longestMinutes`: until the next one at most. */
  note(groupName: string, state: string, nowMs: number, longestMinutes: number): void
}

/** With members, somebody waits for its messages; one without is looked at for its retention. */
export const idleMinutes = 15
export const abandonedMinutes = 60
/** A group with targets, or with an alarm that is to be cleared. */
export const watchedMinutes = 1

const maxRemembered = 50_000

export function createLooks(): Looks {
  const known = createLru<string, { state: string; gapMinutes: number; nextAtMs: number }>(maxRemembered)
  return {
    isDue(groupName, nowMs) {
      const entry = known.get(groupName)
      // A clock that was set back must not keep anybody waiting.
      if (!entry || entry.nextAtMs - nowMs > abandonedMinutes * 60_000) return isTurnOf(groupName, idleMinutes, nowMs)
      return entry.nextAtMs <= nowMs
    },
    isUnknown: groupName => known.peek(groupName) === undefined,
    note(groupName, state, nowMs, longestMinutes) {
      const before = known.get(groupName)
      const gapMinutes = before?.state === state ? Math.min(longestMinutes, before.gapMinutes * 2) : 1
      // The first look tells nothing of what has happened.
      const firstGap = before ? gapMinutes : longestMinutes
      // A little less, since ticks come a little early now and then.
      known.set(groupName, { state, gapMinutes: firstGap, nextAtMs: nowMs + firstGap * 60_000 - 5_000 })
    },
  }
}

/** Spreads what is done once in so many minutes over them: each name has its own. */
export function isTurnOf(name: string, everyMinutes: number, nowMs: number): boolean {
  return Math.floor(nowMs / 60_000) % everyMinutes === hashKey(name) % everyMinutes
}
