import { randomUUID } from 'node:crypto'
import type { Activity } from '../activity.ts'
import type { MovableClock } from '../clock.ts'
import type { RunningFunction } from './function.ts'

/** Lambda's queue of asynchronous invocations: who invokes is not told what became of it. */
export type Asynchronous = {
  invoke(target: RunningFunction, payload: string): void
  stop(): void
}

export type AsynchronousDeps = {
  clock: MovableClock
  activity: Activity
  /** Hears of an event that was given up, where the function has a queue for them. */
  onGivenUp(target: RunningFunction, queueArn: string, body: string): void
}

/** A failed event waits one minute, then two: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html */
const retryMs = [60_000, 120_000]
/** A throttled one is tried again within its age, at growing intervals up to five minutes. */
const throttledMs = { least: 1_000, most: 300_000 }

export function createAsynchronous({ clock, activity, onGivenUp }: AsynchronousDeps): Asynchronous {
  const stopping = new AbortController()

  function attempt(
    target: RunningFunction,
    payload: string,
    failures: number,
    throttles: number,
    sinceMs: number,
  ): void {
    const { retries, maxAgeMs, onFailureArn, deadLetterArn } = target.spec.asynchronous
    activity.during(async () => {
      const requestId = randomUUID()
      const result = await target.invoke(payload, requestId)
      if (result.outcome === 'returned') return
      const isThrottled = result.outcome === 'throttled'
      const waitMs = isThrottled
        ? Math.min(throttledMs.most, throttledMs.least * 2 ** throttles)
        : (retryMs[failures] ?? Number.POSITIVE_INFINITY)
      const mayRetry = isThrottled || failures < retries
      if (!mayRetry || clock.now() + waitMs - sinceMs > maxAgeMs) {
        if (deadLetterArn) onGivenUp(target, deadLetterArn, payload)
        if (onFailureArn) onGivenUp(target, onFailureArn, toRecord(target, payload, requestId, failures + 1))
        return
      }
      clock.sleep(waitMs, stopping.signal).then(() => {
        if (stopping.signal.aborted) return
        attempt(target, payload, failures + (isThrottled ? 0 : 1), throttles + (isThrottled ? 1 : 0), sinceMs)
      })
    })
  }

  return {
    invoke: (target, payload) => attempt(target, payload, 0, 0, clock.now()),
    stop: () => stopping.abort(),
  }
}

/** What a destination is told, as far as anybody reads it. */
function toRecord({ spec }: RunningFunction, payload: string, requestId: string, attempts: number): string {
  return JSON.stringify({
    version: '1.0',
    requestContext: {
      requestId,
      functionArn: spec.arn,
      condition: 'RetriesExhausted',
      approximateInvokeCount: attempts,
    },
    requestPayload: JSON.parse(payload),
  })
}
