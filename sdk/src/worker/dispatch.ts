import { setMaxListeners } from 'node:events'
import type { FailureCause } from '../../../core/protocol/failures.ts'
import type { SafeListeners } from '../consumer-listeners.ts'
import type { PmqClientError } from '../errors.ts'
import type { Message } from '../message.ts'
import { type Attempted, type AttemptsDeps, createAttempts } from './attempts.ts'
import { CallContext } from './call-context.ts'
import { type CallFailure, causeOf, isPostponed } from './call-outcome.ts'

/** What dispatching is made of. `Mark` is whatever `take` wants back in `finished`. */
export type DispatchDeps<Mark> = Omit<AttemptsDeps<Attempted>, 'calls' | 'onEnded'> & {
  /** Takes messages that may be handled now; undefined if there is none, or nothing may be handed out. */
  take(max: number): { messages: Message[]; mark: Mark } | undefined
  /** These messages of a call are done with. */
  finished(messages: readonly Message[], mark: Mark): void
  /** Those of a call that waits to be repeated which nobody has declared done meanwhile. */
  stillOpen(messages: readonly Message[]): readonly Message[]
  /** Which of the failed messages are brought somewhere else, instead of being handed out again by this call. */
  leaving(failed: readonly Message[], failures: number): readonly Message[]
  /** Whether the service has to be told of a success before it is done with. */
  confirms(): boolean
  /** Brings them there, and tells what has succeeded, however long that takes. False: the queue is being given up. Never rejects. */
  bringAway(
    leaving: readonly Message[],
    failures: number,
    succeeded: readonly Message[],
    cause: FailureCause | undefined,
  ): Promise<boolean>
  /** `retryInMs` is absent if nothing of the call is handed out again by it. */
  onFailed(failure: FailedCall): void
  /** The same of a call that has not begun with its messages. */
  onPostponed(call: PostponedCall): void
  /** No call runs, and there is nothing that could be handed out. */
  onIdle(): void
  /** Looked up for each attempt. */
  readonly preHandle: SafeListeners['preHandle']
  random: () => number
}

/** A handler call of which messages have failed. */
export type FailedCall = {
  messages: readonly Message[]
  failed: readonly Message[]
  leaving: readonly Message[]
  failures: number
  error: unknown
  retryInMs: number | undefined
}

/** A handler call that has not begun, and so has not failed. */
export type PostponedCall = {
  messages: readonly Message[]
  error: PmqClientError
  retryInMs: number | undefined
}

/** How many messages a call gets, how many calls run at once, and how long one may take (in seconds; 0: any time). */
export type DispatchSettings = { threadSize: number; consumerBatchSize: number; timeout: number }

/** Gives messages to the handler. */
export type Dispatch = {
  /** Starts what can be started. To be called whenever there is more to take. */
  pump(): void
  /** The same, after other work of the process has had its turn. */
  pumpSoon(): void
  /** Applies from the next call on. */
  update(settings: DispatchSettings): void
  setPaused(isPaused: boolean): void
  /**
   * Repeats no more calls, and starts none but of what is still to be taken then. Resolves when there is nothing more and
   * the running ones have ended.
   */
  stop(): Promise<void>
  /** Stops, and aborts the signals of the running calls: whatever they end with, nothing comes of it. */
  abandon(reason: Error): void
  /** Calls that run, wait to be repeated, or whose failures are being brought away. */
  readonly running: number
  /** No call runs, and there was nothing to hand out when that was last looked for. */
  readonly isIdle: boolean
  /** Those of them that have failed before. */
  readonly failing: number
  /** `preHandle` has not said yes: it has not answered, or has said no and is asked again. */
  readonly isHeld: boolean
  /** When a call last ended, by the monotonic clock. */
  readonly lastHandledAtMs: number | undefined
}

type Call<Mark> = Attempted & { mark: Mark; failures: number; postponements: number }

/** A failed call is repeated soon, and less and less often: most failures are of something that needs time. */
const retryBaseMs = 100
const retryMaxMs = 30_000
/** The same for a listener that has said no. */
const heldBaseMs = 50
const heldMaxMs = 5_000
/** How long calls may follow each other before other work of the process, heartbeats too, gets its turn. */
const maxTurnMs = 10

/**
 * A call takes a slot, and keeps it until its messages are done: while a failed call waits to be repeated, or its failures
 * are being brought away, its slot starts nothing else. So with one slot the order is strict, and however much fails, no
 * more than `threadSize` calls of a queue are ever repeated at once.
 */
export function createDispatch<Mark>(deps: DispatchDeps<Mark>, settings: DispatchSettings): Dispatch {
  const { clock, random } = deps
  const calls = new Set<Call<Mark>>()
  const held: (() => void)[] = []
  const attempts = createAttempts<Call<Mark>>({ ...deps, calls, onEnded })
  const stopping = new AbortController()
  setMaxListeners(0, stopping.signal)
  let { threadSize, consumerBatchSize, timeout } = settings
  let isPaused = false
  let isPumping = false
  let isYielding = false
  let isAbandoned = false
  /** Nothing more begins. */
  let isOver = false
  /** Calls that ask whether they may begin. */
  let asking = 0
  let isHeld = false
  let turnEndsAtMs = Number.NEGATIVE_INFINITY
  let onIdle: (() => void) | undefined
  let idle: Promise<void> | undefined

  function pump(knownNowMs?: number) {
    // A handler that returns at once ends its call inside this loop, which must then not begin again.
    if (isPumping || isYielding) return
    isPumping = true
    try {
      startCalls(knownNowMs)
    } finally {
      isPumping = false
    }
    if (isIdle()) deps.onIdle()
    if (stopping.signal.aborted && calls.size === 0 && !isYielding) {
      isOver = true
      attempts.close()
      onIdle?.()
    }
  }

  function startCalls(knownNowMs: number | undefined) {
    let nextNowMs = knownNowMs
    while (calls.size < threadSize && asking === 0 && !isPaused && !isOver) {
      const nowMs = nextNowMs ?? clock.monotonic()
      nextNowMs = undefined
      if (nowMs >= turnEndsAtMs) {
        pumpSoon()
        break
      }
      const taken = deps.take(consumerBatchSize)
      if (!taken) break
      const { messages, mark } = taken
      const times = { startedAtMs: nowMs, warnAtMs: 0, expiresAtMs: 0 }
      const call = { messages, mark, failures: 0, postponements: 0, ...times, context: undefined }
      calls.add(call)
      begin(call)
    }
  }

  function isIdle(): boolean {
    return calls.size === 0 && !isPumping && !isYielding && !isPaused && !stopping.signal.aborted
  }

  /** Handlers that never wait would follow each other without an end of the event loop's turn. */
  function pumpSoon() {
    if (isYielding) return
    isYielding = true
    setImmediate(() => {
      isYielding = false
      turnEndsAtMs = clock.monotonic() + maxTurnMs
      pump()
    })
  }

  function begin(call: Call<Mark>) {
    const { preHandle } = deps
    if (preHandle) void askFirst(call, preHandle)
    else attempts.begin(call, timeout)
  }

  /** One no is meant for the whole queue: while a call asks, no other one begins. */
  async function askFirst(call: Call<Mark>, ask: NonNullable<SafeListeners['preHandle']>) {
    asking++
    // One that waits for a yes when the queue stops is not asked again.
    const isLeft = stopping.signal.aborted
    for (let pauseMs = heldBaseMs; ; pauseMs = Math.min(heldMaxMs, pauseMs * 2)) {
      await resumed()
      if (stopping.signal.aborted && !isLeft) break
      // The time that it takes to say yes is not the handler's, but is told if it is long.
      call.startedAtMs = clock.monotonic()
      call.context = new CallContext(deps.queue)
      attempts.watch(call, Number.POSITIVE_INFINITY)
      isHeld = true
      isHeld = !(await ask(call.messages, call.context))
      call.context = undefined
      if (!isHeld || stopping.signal.aborted) break
      await clock.sleep(pauseMs, stopping.signal)
    }
    asking--
    call.startedAtMs = clock.monotonic()
    if (isHeld || isAbandoned || (stopping.signal.aborted && !isLeft)) return end(call)
    attempts.begin(call, timeout)
    pump()
  }

  function onEnded(call: Call<Mark>, nowMs: number, failure: CallFailure | undefined) {
    if (isAbandoned) return end(call)
    if (failure && isPostponed(failure.error)) return postpone(call, failure.error)
    if (failure) return fail(call, failure)
    if (deps.confirms()) return void confirm(call)
    deps.finished(call.messages, call.mark)
    end(call, nowMs)
  }

  async function confirm(call: Call<Mark>) {
    const isTold = await deps.bringAway([], 0, call.messages, undefined)
    if (isTold && !isAbandoned) deps.finished(call.messages, call.mark)
    end(call)
  }

  function postpone(call: Call<Mark>, error: PmqClientError) {
    const pauseMs = Math.max(pauseAfter(++call.postponements), error.retryAfterMs ?? 0)
    const retryInMs = stopping.signal.aborted ? undefined : pauseMs
    deps.onPostponed({ messages: call.messages, error, retryInMs })
    if (retryInMs === undefined) end(call)
    else void goOn(call, [], [], undefined, retryInMs)
  }

  /** Up to a tenth less, so that consumers which failed together do not return together. */
  function pauseAfter(times: number): number {
    return Math.min(retryMaxMs, retryBaseMs * 2 ** (times - 1)) * (1 - random() / 10)
  }

  function fail(call: Call<Mark>, failure: CallFailure) {
    const { messages, mark } = call
    const { messages: failed, error } = failure
    const failures = ++call.failures
    call.postponements = 0
    const leaving = deps.leaving(failed, failures)
    const staying = leaving.length === 0 ? failed : failed.filter(message => !leaving.includes(message))
    const retryInMs = stopping.signal.aborted || staying.length === 0 ? undefined : pauseAfter(failures)
    const succeeded = failed.length < messages.length ? messages.filter(message => !failed.includes(message)) : []
    const told = deps.confirms() ? succeeded : []
    if (told.length < succeeded.length) deps.finished(succeeded, mark)
    call.messages = staying
    deps.onFailed({ messages, failed, leaving, failures, error, retryInMs })
    if (leaving.length + told.length === 0 && retryInMs === undefined) end(call)
    else void goOn(call, leaving, told, causeOf(failure), retryInMs)
  }

  async function goOn(
    call: Call<Mark>,
    leaving: readonly Message[],
    succeeded: readonly Message[],
    cause: FailureCause | undefined,
    retryInMs: number | undefined,
  ) {
    if (leaving.length + succeeded.length > 0) {
      const isAway = await deps.bringAway(leaving, call.failures, succeeded, cause)
      if (!isAway || isAbandoned) return end(call)
      deps.finished([...leaving, ...succeeded], call.mark)
    }
    if (retryInMs === undefined) return end(call)
    await clock.sleep(retryInMs, stopping.signal)
    await resumed()
    call.messages = deps.stillOpen(call.messages)
    if (stopping.signal.aborted || call.messages.length === 0) return end(call)
    call.startedAtMs = clock.monotonic()
    begin(call)
  }

  /** Calls that are due during a pause see for themselves how it goes on. */
  async function resumed() {
    if (!isPaused || stopping.signal.aborted) return
    await new Promise<void>(resolve => {
      held.push(resolve)
    })
  }

  function letGo() {
    for (const go of held.splice(0)) go()
  }

  function end(call: Call<Mark>, nowMs?: number) {
    calls.delete(call)
    pump(nowMs)
  }

  return {
    pump: () => pump(),
    pumpSoon,
    update(changed) {
      threadSize = changed.threadSize
      consumerBatchSize = changed.consumerBatchSize
      timeout = changed.timeout
      pump()
    },
    setPaused(paused) {
      isPaused = paused
      if (!isPaused) letGo()
      pump()
    },
    stop() {
      stopping.abort()
      letGo()
      idle ??= new Promise(resolve => {
        onIdle = resolve
      })
      pump()
      return idle
    },
    abandon(reason) {
      stopping.abort()
      letGo()
      isAbandoned = true
      isOver = true
      attempts.abandon(reason)
    },
    get running() {
      return calls.size
    },
    get isIdle() {
      return isIdle()
    },
    get failing() {
      return [...calls].filter(({ failures }) => failures > 0).length
    },
    get isHeld() {
      return isHeld && asking > 0
    },
    get lastHandledAtMs() {
      return attempts.lastEndedAtMs
    },
  }
}
