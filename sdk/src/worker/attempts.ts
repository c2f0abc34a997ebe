import type { Clock } from '../../../core/protocol/clock.ts'
import type { CallResult, SafeListeners } from '../consumer-listeners.ts'
import type { Message, MessageHandler } from '../message.ts'
import { isThenable } from '../thenable.ts'
import { createAlarm } from './alarm.ts'
import { CallContext, type CallQueue } from './call-context.ts'
import { type CallFailure, handlerTimeout, isPostponed, readResult } from './call-outcome.ts'
import { copiesOf } from './copies.ts'

/** What calling a handler is made of. */
export type AttemptsDeps<Call extends Attempted> = {
  handler: MessageHandler
  queue: CallQueue
  /** The calls that there are; those without a context are not looked at. */
  calls: Iterable<Call>
  /** An attempt has ended, in whatever way; not told of one that was abandoned and never ends. */
  onEnded(call: Call, nowMs: number, failure: CallFailure | undefined): void
  onSlow(messages: readonly Message[], runningMs: number): void
  postHandle: SafeListeners['postHandle']
  /** Told what handler calls do, while that is traced. */
  trace: { readonly isOn: boolean; tell(step: 'began' | 'ended' | 'failed', messages: readonly Message[]): void }
  warnTimeoutMs: number
  clock: Clock
}

/** A call, as its attempts see it. */
export type Attempted = {
  messages: readonly Message[]
  /** All by the monotonic clock: when its attempt began, is told as slow next, and has taken too long. */
  startedAtMs: number
  warnAtMs: number
  expiresAtMs: number
  /** Of the attempt that runs; undefined between attempts. What comes from an earlier one is late, and ignored. */
  context: CallContext | undefined
}

/** Calls the handler. */
export type Attempts<Call extends Attempted> = {
  /** Begins an attempt, at the call's `startedAtMs`. One of `timeoutSeconds` 0 may take any time. */
  begin(call: Call, timeoutSeconds: number): void
  /** Tells a call as slow for as long as it has a context: also one that waits for leave to begin. */
  watch(call: Call, expiresAtMs: number): void
  /** No attempt will begin any more: no time is watched. */
  close(): void
  /** Aborts the signals of all that run, and watches their time no more. */
  abandon(reason: Error): void
  /** When an attempt last ended, by the monotonic clock. */
  readonly lastEndedAtMs: number | undefined
}

/** Whatever a handler does, each attempt ends once: with its result, or when its time is over. */
export function createAttempts<Call extends Attempted>(deps: AttemptsDeps<Call>): Attempts<Call> {
  const { handler, queue, clock, trace, postHandle, warnTimeoutMs } = deps
  const alarm = createAlarm(clock, lookAtTimes)
  let isAbandoned = false
  let lastEndedAtMs: number | undefined

  function begin(call: Call, timeoutSeconds: number) {
    const { messages, startedAtMs } = call
    const context = new CallContext(queue)
    call.context = context
    if (trace.isOn) trace.tell('began', messages)
    let returned: unknown
    let isPromised = false
    let failure: CallFailure | undefined
    try {
      returned = handler(copiesOf(messages), context)
      isPromised = isThenable(returned)
      if (!isPromised) failure = readResult(returned, messages)
    } catch (error) {
      failure = { messages, error }
    }
    if (!isPromised) return conclude(call, context, startedAtMs, failure)
    watch(call, timeoutSeconds > 0 ? startedAtMs + timeoutSeconds * 1000 : Number.POSITIVE_INFINITY)
    void follow(call, context, returned)
  }

  function watch(call: Call, expiresAtMs: number) {
    call.warnAtMs = call.startedAtMs + warnTimeoutMs
    call.expiresAtMs = expiresAtMs
    alarm.set(Math.min(call.warnAtMs, expiresAtMs))
  }

  /** Its `then` may be the application's own, and do anything; `await` bears that. */
  async function follow(call: Call, context: CallContext, returned: unknown) {
    const { messages } = call
    let failure: CallFailure | undefined
    try {
      failure = readResult(await returned, messages)
    } catch (error) {
      failure = { messages, error }
    }
    conclude(call, context, clock.monotonic(), failure)
  }

  function lookAtTimes() {
    const nowMs = clock.monotonic()
    for (const call of [...deps.calls]) {
      const { context, messages, startedAtMs } = call
      if (!context) continue
      if (nowMs >= call.expiresAtMs) {
        const error = handlerTimeout(call.expiresAtMs - startedAtMs)
        CallContext.abort(context, error)
        conclude(call, context, nowMs, { messages, error })
        continue
      }
      if (nowMs >= call.warnAtMs) {
        call.warnAtMs = nowMs + warnTimeoutMs
        deps.onSlow(messages, nowMs - startedAtMs)
      }
      alarm.set(Math.min(call.warnAtMs, call.expiresAtMs))
    }
  }

  function conclude(call: Call, context: CallContext, nowMs: number, failure: CallFailure | undefined) {
    // The attempt has timed out, and was concluded then.
    if (call.context !== context) return
    call.context = undefined
    lastEndedAtMs = nowMs
    const { messages } = call
    if (trace.isOn) trace.tell(failure ? 'failed' : 'ended', failure?.messages ?? messages)
    if (postHandle) postHandle(messages, context, resultOf(failure, nowMs - call.startedAtMs))
    deps.onEnded(call, nowMs, failure)
  }

  function resultOf(failure: CallFailure | undefined, durationMs: number): CallResult {
    const isPut = failure !== undefined && isPostponed(failure.error)
    const outcome = isAbandoned ? 'ignored' : isPut ? 'postponed' : failure ? 'failed' : 'done'
    const failed = isPut ? [] : (failure?.messages.map(({ offset }) => offset) ?? [])
    return { outcome, failed, error: failure?.error, durationMs }
  }

  return {
    begin,
    watch,
    close: alarm.close,
    abandon(reason) {
      isAbandoned = true
      alarm.close()
      for (const { context } of deps.calls) if (context) CallContext.abort(context, reason)
    },
    get lastEndedAtMs() {
      return lastEndedAtMs
    },
  }
}
