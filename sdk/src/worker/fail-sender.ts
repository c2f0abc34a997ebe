import { type Backoff, fullJitterMs } from '../../../core/protocol/backoff.ts'
import type { Clock } from '../../../core/protocol/clock.ts'
import type { FailureCause, FailuresRequest, FailuresResponse } from '../../../core/protocol/failures.ts'
import { limits } from '../../../core/protocol/limits.ts'
import type { PublishMessage } from '../../../core/protocol/publish.ts'
import { asClientError, PmqClientError } from '../errors.ts'

/** What sending failures is made of. */
export type FailSenderDeps = {
  /** Sends one request; rejects if there is no good answer. */
  send(request: FailuresRequest, signal: AbortSignal): Promise<FailuresResponse>
  /** Makes a text that no other publish has ever had. */
  newPublishId(): string
  onFailed(error: PmqClientError, retryInMs: number): void
  clock: Clock
  random: () => number
}

/** Failures of one queue. */
export type Failures = {
  queueId: number
  consumerGroupName: string
  queueOffsetId: number
  offsetVersion: number
  failTopicName: string
  messages: readonly PublishMessage[]
  /** Why they have failed. */
  cause: FailureCause | undefined
  /** Offsets of messages of a fail queue that have succeeded. */
  succeeded: readonly number[]
}

const retryBackoff: Backoff = { baseMs: 200, maxMs: 30_000 }
/** JSON text of one request. Far below what the service takes, unless one message alone is larger. */
const maxRequestBytes = 1024 * 1024

/**
 * Brings failures to their fail topic, tells what has succeeded there, and goes on until the service has all of it:
 * `stored`. Whatever it says instead, only the end of the ownership ends this: `fenced`, or an abort of `signal`. Never
 * rejects.
 */
export async function sendFailures(
  deps: FailSenderDeps,
  failures: Failures,
  signal: AbortSignal,
): Promise<'stored' | 'fenced' | 'aborted'> {
  const { failTopicName: topicName, messages, succeeded, cause, ...queue } = failures
  const failed = inRequests(messages)
  const told = inLists(succeeded)
  for (let index = 0; index < Math.max(failed.length, told.length); index++) {
    const [msgs, ids] = [failed[index], told[index]]
    const progress = { attempt: 0, attemptAgeMs: 0 }
    const failMsg = msgs && Object.assign(progress, { topicName, msgs, publishId: deps.newPublishId() })
    const request = { ...queue, ...(failMsg && { failMsg, cause }), ...(ids && { ids }) }
    const outcome = await sendOne(deps, request, progress, signal)
    if (outcome !== 'stored') return outcome
  }
  return 'stored'
}

async function sendOne(
  { send, clock, random, onFailed }: FailSenderDeps,
  request: FailuresRequest,
  progress: { attempt: number; attemptAgeMs: number },
  signal: AbortSignal,
): Promise<'stored' | 'fenced' | 'aborted'> {
  const firstSentAtMs = clock.monotonic()
  for (let retry = 0; !signal.aborted; retry++) {
    try {
      progress.attempt++
      progress.attemptAgeMs = Math.ceil(clock.monotonic() - firstSentAtMs)
      const answer = await send(request, signal)
      if (answer.suc) return 'stored'
      if (answer.fenced) return 'fenced'
      throw new PmqClientError('refused', `The fail topic did not take them: ${answer.msg ?? 'no reason given'}`)
    } catch (thrown) {
      if (signal.aborted) break
      const error = asClientError(thrown)
      const retryInMs = Math.max(
        retryBackoff.baseMs / 2,
        fullJitterMs(retryBackoff, retry, random),
        error.retryAfterMs ?? 0,
      )
      onFailed(error, retryInMs)
      await clock.sleep(retryInMs, signal)
    }
  }
  return 'aborted'
}

/** Cuts offsets into lists that one request may carry. */
function inLists(offsets: readonly number[]): number[][] {
  const most = limits.maxNamesPerRequest
  return Array.from({ length: Math.ceil(offsets.length / most) }, (_, i) => offsets.slice(i * most, (i + 1) * most))
}

/** Cuts messages into lists that one request may carry. */
function inRequests(messages: readonly PublishMessage[]): PublishMessage[][] {
  const requests: PublishMessage[][] = []
  let bytes = 0
  for (const message of messages) {
    const size = Buffer.byteLength(JSON.stringify(message))
    const current = requests.at(-1)
    if (current && bytes + size <= maxRequestBytes && current.length < limits.maxMessagesPerPublish) {
      current.push(message)
      bytes += size
    } else {
      requests.push([message])
      bytes = size
    }
  }
  return requests
}
