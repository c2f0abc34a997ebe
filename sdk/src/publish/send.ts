import { type Backoff, fullJitterMs } from '../../../core/protocol/backoff.ts'
import type { Clock } from '../../../core/protocol/clock.ts'
import type { PublishMessage, PublishRequest, PublishResponse } from '../../../core/protocol/publish.ts'
import type { Api } from '../api.ts'
import { asClientError, PmqClientError, PublishError } from '../errors.ts'
import type { EventListener } from '../events.ts'
import { readPublishAnswer } from './answer.ts'
import { failPart, type Outcome, type Part, settlePart } from './call.ts'
import type { TopicQueues } from './topic-queues.ts'
import type { Lane } from './topic-stream.ts'

/** What sending is made of. */
export type SendDeps = {
  api: Api
  queues: TopicQueues
  clock: Clock
  random: () => number
  /** Makes a text that no other publish has ever had. */
  newPublishId: () => string
  requestTimeoutMs: number
  publishTimeoutMs: number
  emit: EventListener
  /** Ends all attempts: the parts are told at once what is known of them. */
  givenUp: AbortSignal
}

/** A lost answer is asked for again soon; a service in trouble is left more and more in peace. */
const retryBackoff: Backoff = { baseMs: 50, maxMs: 5_000 }

/**
 * Node's timers may fire this much early. An attempt that was given all of the time that was left is the last one, also
 * then: another one would overlap it.
 */
const timerSlackMs = 2

/**
 * Sends parts as one request until each of them has an outcome: an answer, or its deadline. As soon as an attempt may
 * have stored something, every further one carries the same publishId, the same messages and the same queue, so that the
 * service can find what it stored. Until then each one is as the first: the service need not look for anything.
 *
 * A part is told its deadline in time, whatever goes on. It ends no attempt: the service may still be at work on that, and
 * would store the others twice if they were sent again meanwhile. So an attempt has as long as its last part. The messages
 * of a part that is over stay in the request, unless no attempt can have stored them: then nothing may store them later.
 *
 * Never rejects.
 */
export async function sendParts(deps: SendDeps, topicName: string, given: Part[], lane: Lane): Promise<void> {
  const { clock, api, givenUp } = deps
  const isKeyed = given[0]?.messages[0]?.key !== undefined
  const deadlineMs = Math.max(...given.map(({ call }) => call.deadlineMs))
  let parts = given
  let messages = joinMessages(parts)
  const request: PublishRequest = { topicName, msgs: messages, publishId: deps.newPublishId() }
  /** How many requests went out. */
  let sent = 0
  /** The same, from the first one on that may have stored something. */
  let attempt = 0
  let firstSentAtMs = 0
  let failures = 0
  /** An attempt is not answered yet. */
  let isUnderWay = false
  /** An attempt that is over may have stored something. */
  let isInDoubt = false
  let known: (Outcome | undefined)[] | undefined
  let lastError: PmqClientError | undefined

  for (;;) {
    if (settleOverdue() === undefined) return

    let waitMs: number
    try {
      if (!isInDoubt) {
        // Until something may be stored the queue is free to choose; from then on it is where the service will look.
        attempt = 0
        const untilMs = clock.monotonic() + deps.requestTimeoutMs
        request.queueId = await settlingInTime(chooseQueue(deps, topicName, lane), untilMs)
        if (settleOverdue() === undefined) return
        leaveOutSettled()
      }
      const answer = readPublishAnswer(await publish(), messages.length, isInDoubt)
      known = known ? merge(known, answer.outcomes) : answer.outcomes
      if (!isKeyed && answer.queueId !== undefined && answer.queueId !== request.queueId) {
        lane.queueId = answer.queueId
        lane.settledUntilMs = clock.monotonic() + settleMs
      }
      if (answer.waitMs === 0) return settleAll()
      waitMs = answer.waitMs
      // The service asks to wait also where its store gave no answer.
      isInDoubt = true
      lastError = new PmqClientError('throttled', 'The service asks for a slower pace.', { retryAfterMs: waitMs })
    } catch (thrown) {
      lastError = asClientError(thrown)
      isInDoubt ||= attempt > 0 && lastError.inDoubt
      if (!lastError.retryable) return failAll(lastError)
      if (givenUp.aborted) continue
      const { code, retryAfterMs } = lastError
      waitMs = Math.max(fullJitterMs(retryBackoff, failures, deps.random), retryAfterMs ?? 0)
      // A service that names the pace is not in trouble.
      if (code !== 'throttled' || retryAfterMs === undefined) failures++
    }
    deps.emit({ type: 'request_failed', operation: 'publish', topicName, error: lastError, retryInMs: waitMs })
    const nowMs = clock.monotonic()
    const untilMs = Math.min(nowMs + waitMs, deadlineMs)
    await settlingInTime(clock.sleep(Math.max(0, untilMs - nowMs), givenUp), untilMs)
  }

  async function publish(): Promise<PublishResponse> {
    const nowMs = clock.monotonic()
    if (attempt === 0) firstSentAtMs = nowMs
    sent++
    request.attempt = ++attempt
    request.attemptAgeMs = Math.ceil(nowMs - firstSentAtMs)
    const untilMs = Math.min(nowMs + deps.requestTimeoutMs, deadlineMs)
    isUnderWay = true
    try {
      return await settlingInTime(api.publish(request, { timeoutMs: untilMs - nowMs, signal: givenUp }), untilMs)
    } finally {
      isUnderWay = false
    }
  }

  /** Waits for `work`, which ends by itself at `untilMs`. Tells meanwhile each part whose time is over before that. */
  async function settlingInTime<T>(work: Promise<T>, untilMs: number): Promise<T> {
    const nextMs = settleOverdue()
    // As a rule nobody's time is over so soon; a controller costs some microseconds.
    if (nextMs === undefined || nextMs >= untilMs) return work
    const ended = new AbortController()
    void settleFrom(nextMs, untilMs, ended.signal)
    try {
      return await work
    } finally {
      ended.abort()
    }
  }

  async function settleFrom(firstMs: number, untilMs: number, ended: AbortSignal) {
    for (let nextMs: number | undefined = firstMs; nextMs !== undefined && nextMs < untilMs; nextMs = settleOverdue()) {
      await clock.sleep(nextMs - clock.monotonic(), ended)
      // How the work ended is to be read first: it may say what became of the parts.
      if (ended.aborted) return
    }
  }

  /** A part of which nothing can be stored must not be stored later. */
  function leaveOutSettled() {
    if (!parts.some(part => part.isSettled)) return
    parts = parts.filter(part => !part.isSettled)
    messages = joinMessages(parts)
    request.msgs = messages
  }

  /** Tells the parts whose time is over, all of them when they are given up; the earliest deadline of the others, or undefined if there are none. */
  function settleOverdue(): number | undefined {
    const nowMs = clock.monotonic()
    let earliestMs: number | undefined
    for (const [index, part] of parts.entries()) {
      const { deadlineMs } = part.call
      if (part.isSettled) continue
      if (givenUp.aborted || deadlineMs - nowMs <= timerSlackMs) {
        lane.queueId = undefined
        settleWithKnown(part, index, unansweredError())
      } else if (earliestMs === undefined || deadlineMs < earliestMs) earliestMs = deadlineMs
    }
    return earliestMs
  }

  function settleAll() {
    let from = 0
    for (const part of parts) {
      settlePart(part, known as Outcome[], from)
      from += part.messages.length
    }
  }

  function failAll(cause: PmqClientError) {
    lane.queueId = undefined
    const outcome = isInDoubt ? 'unknown' : 'not_stored'
    const { code, message, status, requestId, retryAfterMs } = cause
    const error = new PublishError(code, message, { cause, outcome, status, requestId, retryAfterMs })
    for (const [index, part] of parts.entries()) settleWithKnown(part, index, error)
  }

  /** An answer that asked to wait may have said already where some of the messages are. */
  function settleWithKnown(part: Part, index: number, error: PublishError) {
    if (!known) return failPart(part, error)
    const from = parts.slice(0, index).reduce((sum, earlier) => sum + earlier.messages.length, 0)
    const outcomes = part.messages.map((_, position) => known?.[from + position] ?? error)
    settlePart(part, outcomes, 0)
  }

  function unansweredError(): PublishError {
    const mayBeStored = isInDoubt || isUnderWay
    const outcome = mayBeStored ? 'unknown' : 'not_stored'
    const told = mayBeStored ? 'it may be stored or not' : 'it is not stored'
    const time = givenUp.aborted ? 'before the producer was closed' : `within ${deps.publishTimeoutMs} ms`
    const attempts = sent === 0 ? 'It was never sent.' : `Attempts: ${sent}.`
    const text = `The publish had no final answer ${time}; ${told}. ${attempts}`
    return new PublishError(givenUp.aborted ? 'closed' : 'deadline_exceeded', text, { cause: lastError, outcome })
  }
}

/** How long a lane stays in the queue that the service found by yielding to other publishers. */
const settleMs = 10_000

/** The queue after the lane's last one, or that one while the lane is settled; at first, any. None: the service will say why. */
async function chooseQueue(deps: SendDeps, topicName: string, lane: Lane): Promise<number | undefined> {
  const queueIds = await deps.queues.get(topicName)
  const last = queueIds.indexOf(lane.queueId ?? 0)
  if (last === -1) lane.queueId = queueIds[Math.floor(deps.random() * queueIds.length)]
  else if (deps.clock.monotonic() >= lane.settledUntilMs) lane.queueId = queueIds[(last + 1) % queueIds.length]
  return lane.queueId
}

function joinMessages(parts: Part[]): PublishMessage[] {
  const [only] = parts
  return parts.length === 1 && only ? only.messages : parts.flatMap(part => part.messages)
}

/** Earlier answers only left outcomes of what was stored, and what is stored stays where it is. */
function merge(earlier: (Outcome | undefined)[], later: (Outcome | undefined)[]): (Outcome | undefined)[] {
  return later.map((outcome, index) => earlier[index] ?? outcome)
}
