import { setMaxListeners } from 'node:events'
import type { Clock } from '../../../core/protocol/clock.ts'
import type { Message, MessageHandler } from '../message.ts'
import { CallContext } from './call-context.ts'

/** What dispatching is made of. `Mark` is whatever `started` wants back in `finished`. */
export type DispatchDeps<Mark> = {
  handler: MessageHandler
  queue: { groupName: string; topicName: string; queueId: number }
  /** Takes messages from the buffer; none if there is nothing, or nothing may be handed out now. */
  take(max: number): Message[]
  /** Messages are handed out, up to `lastOffset`. */
  started(lastOffset: number): Mark
  finished(mark: Mark): void
  /** `retryInMs` is absent if the call is not repeated. */
  onFailed(failure: { messages: Message[]; failures: number; error: unknown; retryInMs: number | undefined }): void
  clock: Clock
  random: () => number
}

/** How many messages a call gets, and how many calls run at once. */
export type DispatchSettings = { threadSize: number; consumerBatchSize: number }

/** Gives messages to the handler. */
export type Dispatch = {
  /** Starts what can be started. To be called whenever there is more to take. */
  pump(): void
  /** Applies from the next call on. */
  update(settings: DispatchSettings): void
  setPaused(isPaused: boolean): void
  /** Starts no more calls and repeats none. Resolves when the running ones have ended. */
  stop(): Promise<void>
  /** Stops, and aborts the signals of the running calls: whatever they end with, nothing comes of it. */
  abandon(): void
  /** Calls that run or wait to be repeated. */
  readonly running: number
}

type Call<Mark> = { messages: Message[]; mark: Mark; failures: number; context: CallContext }

/** A failed call is repeated soon, and less and less often: most failures are of something that needs time. */
const retryBaseMs = 100
const retryMaxMs = 30_000
/** How long calls may follow each other before other work of the process, heartbeats too, gets its turn. */
const maxTurnMs = 10

/**
 * A call takes a slot, and keeps it until its messages are done: while a failed call waits to be repeated, its slot
 * starts nothing else. So with one slot the order is strict, and however much fails, no more than `threadSize` calls of
 * a queue are ever repeated at once.
 */
export function createDispatch<Mark>(deps: DispatchDeps<Mark>, settings: DispatchSettings): Dispatch {
  const { clock, random, handler } = deps
  const calls = new Set<Call<Mark>>()
  const held: (() => void)[] = []
  const stopping = new AbortController()
  setMaxListeners(0, stopping.signal)
  let { threadSize, consumerBatchSize } = settings
  let isPaused = false
  let isPumping = false
  let isYielding = false
  let isAbandoned = false
  let turnEndsAtMs = Number.NEGATIVE_INFINITY
  let onIdle: (() => void) | undefined
  let idle: Promise<void> | undefined

  function pump() {
    // A handler that returns at once ends its call inside this loop, which must then not begin again.
    if (isPumping || isYielding) return
    isPumping = true
    while (calls.size < threadSize && !isPaused && !stopping.signal.aborted) {
      if (clock.monotonic() >= turnEndsAtMs) {
        yieldTurn()
        break
      }
      const messages = deps.take(consumerBatchSize)
      const last = messages.at(-1)
      if (!last) break
      const mark = deps.started(last.offset)
      const call = { messages, mark, failures: 0, context: new CallContext(deps.queue) }
      calls.add(call)
      attempt(call)
    }
    isPumping = false
  }

  /** Handlers that never wait would follow each other without an end of the event loop's turn. */
  function yieldTurn() {
    isYielding = true
    setImmediate(() => {
      isYielding = false
      turnEndsAtMs = clock.monotonic() + maxTurnMs
      pump()
    })
  }

  function attempt(call: Call<Mark>) {
    let promised: Promise<unknown> | undefined
    try {
      // The handler gets its own array: what it does to it must not change what is repeated.
      const returned: unknown = handler(call.messages.slice(), call.context)
      if (isThenable(returned)) promised = Promise.resolve(returned)
    } catch (error) {
      return fail(call, error)
    }
    if (!promised) return succeed(call)
    promised.then(
      () => succeed(call),
      (error: unknown) => fail(call, error),
    )
  }

  function succeed(call: Call<Mark>) {
    if (!isAbandoned) deps.finished(call.mark)
    end(call)
  }

  function fail(call: Call<Mark>, error: unknown) {
    if (isAbandoned) return end(call)
    const { messages } = call
    const failures = ++call.failures
    const backoffMs = Math.min(retryMaxMs, retryBaseMs * 2 ** (failures - 1))
    // Up to a tenth less, so that consumers which failed together do not return together.
    const retryInMs = stopping.signal.aborted ? undefined : backoffMs * (1 - random() / 10)
    deps.onFailed({ messages, failures, error, retryInMs })
    if (retryInMs === undefined) end(call)
    else void repeat(call, retryInMs)
  }

  async function repeat(call: Call<Mark>, retryInMs: number) {
    await clock.sleep(retryInMs, stopping.signal)
    if (isPaused && !stopping.signal.aborted) {
      await new Promise<void>(resolve => {
        held.push(resolve)
      })
    }
    if (stopping.signal.aborted) end(call)
    else attempt(call)
  }

  /** Calls that were due to be repeated during a pause see for themselves how it goes on. */
  function letGo() {
    for (const go of held.splice(0)) go()
  }

  function end(call: Call<Mark>) {
    calls.delete(call)
    if (calls.size === 0) onIdle?.()
    pump()
  }

  return {
    pump,
    update(changed) {
      threadSize = changed.threadSize
      consumerBatchSize = changed.consumerBatchSize
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
        if (calls.size === 0) resolve()
      })
      return idle
    },
    abandon() {
      stopping.abort()
      letGo()
      isAbandoned = true
      for (const { context } of calls) CallContext.abort(context)
    },
    get running() {
      return calls.size
    },
  }
}

function isThenable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value
}
