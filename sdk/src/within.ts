import type { Clock } from '../../core/protocol/clock.ts'

/**
 * Waits for `work`, but no longer than `ms` milliseconds, nor beyond an abort of `signal`. True: it ended in time.
 * `work` must not reject.
 */
export async function endsWithin(
  clock: Clock,
  ms: number,
  work: Promise<unknown>,
  signal?: AbortSignal,
): Promise<boolean> {
  const waiting = new AbortController()
  const stopWaiting = () => waiting.abort()
  signal?.addEventListener('abort', stopWaiting, { once: true })
  if (signal?.aborted) stopWaiting()
  const inTime = work.then(() => true)
  const timeUp = clock.sleep(ms, waiting.signal).then(() => false)
  const answer = await Promise.race([inTime, timeUp])
  signal?.removeEventListener('abort', stopWaiting)
  stopWaiting()
  return answer
}
