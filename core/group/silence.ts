import { createLru } from '../lru.ts'

/**
 * Tells a consumer that is gone from one that could not be heard. After minutes in which the store was away every
 * heartbeat is old, and whoever went by that alone would give everybody up at once. So a container gives a consumer up
 * only if it has itself met it silent twice, the second time half a session time-out or more after the first, and the
 * store has answered all the while: in that time a consumer that lives sends another heartbeat.
 *
 * PMQ learned this too: since 5.5.2 its first two rounds after a start or a failure give nobody up.
 */
export type SilenceWatch = {
  /** Whether a heartbeat is so old that one is missing. */
  isSilent(heartbeatAtMs: number, nowMs: number): boolean
  /**
   * Takes note of how old a consumer's heartbeat is. True: it is to be given up. A heartbeat from the future is of a clock
   * that was set back since; a consumer that lives soon sends another.
   */
  isOver(consumerId: number, heartbeatAtMs: number, nowMs: number): boolean
  /** The store has failed: what was heard and what was not is no longer certain. */
  forgetAll(): void
}

type Silence = { heartbeatAtMs: number; firstMetAtMs: number; lastMetAtMs: number }

/** More consumers than one service will have. */
const maxRemembered = 100_000
/**
 * A container that slept for longer has missed what happened meanwhile. The tick comes every minute.
 */
const longestGapMs = 90_000

export function createSilenceWatch(sessionTimeoutMs: number): SilenceWatch {
  const graceMs = sessionTimeoutMs / 2
  const met = createLru<number, Silence>(maxRemembered)

  const isSilent = (heartbeatAtMs: number, nowMs: number) => Math.abs(nowMs - heartbeatAtMs) > graceMs

  return {
    isSilent,
    isOver(consumerId, heartbeatAtMs, nowMs) {
      if (!isSilent(heartbeatAtMs, nowMs)) {
        met.delete(consumerId)
        return false
      }
      const before = met.get(consumerId)
      const goesOn =
        before?.heartbeatAtMs === heartbeatAtMs &&
        nowMs >= before.lastMetAtMs &&
        nowMs - before.lastMetAtMs <= longestGapMs
      const firstMetAtMs = goesOn ? before.firstMetAtMs : nowMs
      met.set(consumerId, { heartbeatAtMs, firstMetAtMs, lastMetAtMs: nowMs })
      return Math.abs(nowMs - heartbeatAtMs) > sessionTimeoutMs && nowMs - firstMetAtMs >= graceMs
    },
    forgetAll: () => met.clear(),
  }
}
