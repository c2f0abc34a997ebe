import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { Clock } from '../../core/protocol/clock.ts'
import { limits } from '../../core/protocol/limits.ts'
import { type Api, expectSuccess } from './api.ts'
import { PublishError, type PublishResult } from './errors.ts'
import type { EventListener } from './events.ts'
import { callPreSend, callSafely, type PreSendListener } from './listeners.ts'
import type { NewMessage } from './message.ts'
import { ownOf } from './own.ts'
import { type ProducerOptions, resolveProducerOptions } from './producer-options.ts'
import { combineErrors, type Outcome } from './publish/call.ts'
import { checkMessage } from './publish/check-message.ts'
import { createIntake, refusal } from './publish/intake.ts'
import { sendParts } from './publish/send.ts'
import { createTopicQueues } from './publish/topic-queues.ts'
import { traceSubmit } from './tracing/trace-publish.ts'
import type { Tracing } from './tracing/tracing.ts'
import { endsWithin } from './within.ts'

/** Publishes messages: gathers those of many calls into few requests and retries what got no answer. */
export interface Producer extends AsyncDisposable {
  /**
   * Publishes one message; resolves when it is durable. Rejects with a `PublishError`, whose `outcome` says whether the
   * message is certainly not stored or may be. With `whenFull: 'wait'` a call that finds no room waits with its message:
   * only a program that awaits its publishes is slowed down by it.
   */
  publish(topicName: string, message: NewMessage): Promise<PublishResult>
  /**
   * Publishes up to 1,000 messages, as one batch where they fit in one. Resolves when all are durable; if some are not,
   * rejects with a `PublishError` whose `results` say what became of each.
   */
  publish(topicName: string, messages: readonly NewMessage[]): Promise<PublishResult[]>
  /**
   * Hands messages over without waiting, as PMQ's `publishAsyn`. True: they are accepted. False: none of them is, such as
   * for want of room, whatever `whenFull` says. It never throws, and nothing is lost in silence: `onDone` is called once,
   * later, with what became of them, also behind `false`; without it each failure is told by the event `publish_failed`.
   */
  publishAsync(topicName: string, message: NewMessage, onDone?: PublishDone<PublishResult>): boolean
  /** The same with several messages, which are accepted all or none; an error then has `results`, as of `publish`. */
  publishAsync(topicName: string, messages: readonly NewMessage[], onDone?: PublishDone<PublishResult[]>): boolean
  /** Resolves when every publish called so far is settled. Never rejects: each call has its own answer. */
  flush(): Promise<void>
  /**
   * Accepts nothing more, then flushes. Safe to call twice, where a later call may shorten the time of the first. Never
   * rejects: each publish has its own answer before it resolves.
   */
  close(options?: CloseOptions): Promise<void>
}

/**
 * Told what became of a `publishAsync`: an error, or where the messages are. What it throws is told by the event
 * `callback_failed`.
 */
export type PublishDone<Result> = (error: PublishError | undefined, result: Result | undefined) => void

/** How a producer closes. */
export type CloseOptions = {
  /**
   * How long publishes under way may still try, in milliseconds; the others then fail with code `closed`, and their
   * `outcome` says whether they may be stored.
   * @default none: until each one's publishTimeoutMs
   */
  timeoutMs?: number | undefined
}

/** What a producer is made of. */
export type ProducerDeps = {
  api: Api
  clock: Clock
  random: () => number
  requestTimeoutMs: number
  preSend: PreSendListener | undefined
  tracing: Tracing | undefined
  emit: EventListener
  /** Called when the producer is closed and nothing of it is left. */
  onClosed(): void
}

/** What became of a publish. */
export type Settled = { error: PublishError } | { error: undefined; result: PublishResult | PublishResult[] }
/** What a publish is given. */
export type Given = NewMessage | readonly NewMessage[]

/** Makes a producer. Throws a `PmqClientError` with code `invalid_options` for options that cannot be. */
export function createProducer(deps: ProducerDeps, given: ProducerOptions = {}): Producer {
  const options = resolveProducerOptions(given)
  const { clock, api, emit, preSend } = deps
  const { publishTimeoutMs } = options
  const givingUp = new AbortController()
  const { signal } = givingUp
  setMaxListeners(0, signal)
  const timeoutMs = Math.min(deps.requestTimeoutMs, publishTimeoutMs)
  const queues = createTopicQueues({
    clock,
    async ask(topicName) {
      const answer = await api.getTopicQueueIds({ topicNames: [topicName] }, { timeoutMs, signal })
      return ownOf(expectSuccess('getTopicQueueIds', answer).topicQueues, topicName) ?? []
    },
  })
  const sendDeps = { ...deps, queues, newPublishId: randomUUID, publishTimeoutMs, givenUp: signal }
  const send = sendParts.bind(undefined, sendDeps)
  const intake = createIntake({ options, clock, send })
  let closed: Promise<void> | undefined

  const submit = deps.tracing ? traceSubmit(deps.tracing, take) : take

  /** Throws, or calls `onSettled` once, later. */
  function take(topicName: string, given: Given, mayWait: boolean, onSettled: (settled: Settled) => void) {
    if (closed) throw refusal('closed', 'The producer is closed and accepts no more messages.')
    const check = (message: NewMessage, index?: number) =>
      checkMessage(preSend ? callPreSend(preSend, topicName, message) : message, index)
    if (!isMany(given)) {
      return intake.take(topicName, [check(given)], mayWait, ([outcome]) => {
        onSettled(settledBy(outcome))
      })
    }
    if (given.length === 0) return queueMicrotask(() => onSettled({ error: undefined, result: [] }))
    if (given.length > limits.maxMessagesPerPublish)
      throw refusal(
        'invalid_message',
        `publish was given ${given.length} messages; at most ${limits.maxMessagesPerPublish} are accepted at once`,
      )
    // Unlike `map` it comes by the holes of a list too, whose places in the answer would be taken by others.
    intake.take(topicName, Array.from(given, check), mayWait, outcomes => {
      const error = combineErrors(outcomes)
      onSettled(error ? { error } : { error, result: outcomes as PublishResult[] })
    })
  }

  function publish(topicName: string, message: NewMessage): Promise<PublishResult>
  function publish(topicName: string, messages: readonly NewMessage[]): Promise<PublishResult[]>
  function publish(topicName: string, given: Given) {
    // A throw in here becomes the rejection.
    return new Promise<PublishResult | PublishResult[]>((resolve, reject) => {
      submit(topicName, given, options.whenFull === 'wait', settled => {
        if (settled.error) reject(settled.error)
        else resolve(settled.result)
      })
    })
  }

  function publishAsync(topicName: string, given: Given, onDone?: PublishDone<never>): boolean {
    const tell = (settled: Settled) => {
      const { error } = settled
      if (onDone) {
        const result = error ? undefined : (settled.result as never)
        const onThrown = (thrown: unknown) =>
          emit({ type: 'callback_failed', callback: 'onDone', topicName, error: thrown })
        callSafely(() => onDone(error, result), onThrown)
      } else if (error) {
        const messages = error.results?.filter(result => result instanceof PublishError).length
        emit({ type: 'publish_failed', topicName, messages: messages ?? (isMany(given) ? given.length : 1), error })
      }
    }
    try {
      submit(topicName, given, false, tell)
      return true
    } catch (thrown) {
      const error = thrown instanceof PublishError ? thrown : unreadable(thrown)
      queueMicrotask(() => tell({ error }))
      return false
    }
  }

  async function finish() {
    intake.hurry()
    await intake.flush()
    intake.end()
    deps.onClosed()
  }

  function close(how?: CloseOptions): Promise<void> {
    closed ??= finish()
    const closing = closed
    // Anything may come: it is a listener where a program writes `once('SIGTERM', producer.close)`.
    const timeoutMs = how?.timeoutMs
    if (timeoutMs !== undefined) {
      void endsWithin(clock, timeoutMs, closing).then(isInTime => {
        if (!isInTime) givingUp.abort()
      })
    }
    return closing
  }

  return {
    publish,
    publishAsync,
    flush: intake.flush,
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

/** `Array.isArray` alone does not tell a readonly array from an object. */
const isMany = (given: Given): given is readonly NewMessage[] => Array.isArray(given)

function settledBy(outcome: Outcome | undefined): Settled {
  return outcome instanceof PublishError ? { error: outcome } : { error: undefined, result: outcome as PublishResult }
}

/** A message of which a property throws when it is read. */
function unreadable(cause: unknown): PublishError {
  return new PublishError('invalid_message', 'A message cannot be read.', { cause, outcome: 'not_stored' })
}
