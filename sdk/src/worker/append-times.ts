import type { Clock } from '../../../core/protocol/clock.ts'

/** Says when batches were appended, by the monotonic clock of this process. */
export type AppendTimes = {
  /**
   * `batchTimeMs`: by the service's clock; `serviceNowMs`: what that clock said when it answered, if it did. Batches must
   * come in offset order.
   */
  of(batchTimeMs: number, serviceNowMs: number | undefined): number
}

/**
 * A delay is reckoned from here, so a clock that jumps later, here or there, moves nothing that waits. It errs to the late
 * side: by how long the answer took to come, and never before a batch of a lower offset, since the writers' clocks may
 * differ and equal delays must keep the order. A batch from the future was appended when it was pulled, at the latest.
 */
export function createAppendTimes(clock: Clock): AppendTimes {
  let latestMs = Number.NEGATIVE_INFINITY
  return {
    of(batchTimeMs, serviceNowMs = clock.now()) {
      const ageMs = Math.max(0, serviceNowMs - batchTimeMs)
      latestMs = Math.max(latestMs, clock.monotonic() - ageMs)
      return latestMs
    },
  }
}
