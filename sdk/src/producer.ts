import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { Clock } from '../../core/protocol/clock.ts'
import { limits } from '../../core/protocol/limits.ts'
import { type Api, expectSuccess } from './api.ts'
import { PublishError, type PublishResult } from './errors.ts'
import type { EventListener } from './events.ts'
import type { NewMessage } from './message.ts'
import { type ProducerOptions, resolveProducerOptions } from './producer-options.ts'
import { createAdmission } from './publish/admission.ts'
import { type Call, combineErrors, divide, hasKey, type Part } from './publish/call.ts'
import { checkMessage, messageBytes } from './publish/check-message.ts'
import { createProgress } from './publish/progress.ts'
import { type SendDeps, sendParts } from './publish/send.ts'
import { createTopicQueues } from './publish/topic-queues.ts'
import { createTopicStream, type TopicStream } from './publish/topic-stream.ts'
import { tracePublish } from './tracing/trace-publish.ts'
import type { Tracing } from './tracing/tracing.ts'

/** Publishes messages: gathers those of many calls into few requests and retries what got no answer. */
export interface Producer extends AsyncDisposable {
  /**
   * Publishes one message; resolves when it is durable. Rejects with a `PublishError`, whose `outcome` says whether the
   * message is certainly not stored or may be.
   */
  publish(topicName: string, message: NewMessage): Promise<PublishResult>
  /**
   * Publishes up to 1,000 messages, as one batch where they fit in one. Resolves when all are durable; if some are not,
   * rejects with a `PublishError` whose `results` say what became of each.
   */
  publish(topicName: string, messages: readonly NewMessage[]): Promise<PublishResult[]>
  /** Resolves when every publish called so far is settled. Never rejects: each call has its own answer. */
  flush(): Promise<void>
  /** Accepts nothing more, then flushes. Safe to call twice. */
  close(): Promise<void>
}

/** What a producer is made of. */
export type ProducerDeps = {
  api: Api
  clock: Clock
  random: () => number
  requestTimeoutMs: number
  tracing: Tracing | undefined
  emit: EventListener
  /** Called when the producer is closed and nothing of it is left. */
  onClosed(): void
}

/** How long messages gather behind a request that hangs, before they take another lane. Above a usual round trip. */
const maxGatherMs = 100

/** Makes a producer. Throws a `PmqClientError` with code `invalid_options` for options that cannot be. */
export function createProducer(deps: ProducerDeps, given: ProducerOptions = {}): Producer {
  const options = resolveProducerOptions(given)
  const { clock, api } = deps
  const { publishTimeoutMs, maxBufferedMessages, maxBufferedBytes } = options
  const admission = createAdmission({ maxMessages: maxBufferedMessages, maxBytes: maxBufferedBytes })
  const progress = createProgress()
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)
  const streams = new Map<string, { keyed: TopicStream; unkeyed: TopicStream }>()
  const timeoutMs = Math.min(deps.requestTimeoutMs, publishTimeoutMs)
  const queues = createTopicQueues({
    clock,
    async ask(topicName) {
      const answer = await api.getTopicQueueIds({ topicNames: [topicName] }, { timeoutMs })
      return expectSuccess('getTopicQueueIds', answer).topicQueues?.[topicName] ?? []
    },
  })
  const sendDeps: SendDeps = { ...deps, queues, newPublishId: randomUUID, publishTimeoutMs }
  let closed: Promise<void> | undefined

  function streamOf(topicName: string, isKeyed: boolean): TopicStream {
    let pair = streams.get(topicName)
    if (!pair) {
      if (typeof topicName !== 'string' || !limits.namePattern.test(topicName))
        throw refusal('invalid_message', `topicName is "${String(topicName)}"; it must match ${limits.namePattern}`)
      const make = (maxInFlight: number) =>
        createTopicStream({
          ...options,
          clock,
          maxGatherMs,
          maxInFlight,
          signal: closing.signal,
          send: (parts, lane) => sendParts(sendDeps, topicName, parts, lane),
        })
      pair = { keyed: make(1), unkeyed: make(options.maxInFlight) }
      streams.set(topicName, pair)
    }
    return isKeyed ? pair.keyed : pair.unkeyed
  }

  /** Accepts messages that are checked, now or as soon as there is room. */
  function accept(topicName: string, messages: ReturnType<typeof checkMessage>[], onSettled: (call: Call) => void) {
    const sizes = messages.map(messageBytes)
    const bytes = sizes.reduce((sum, size) => sum + size, 0)
    const stream = streamOf(topicName, hasKey(messages[0]))
    const held = { messages: messages.length, bytes }
    if (held.messages > maxBufferedMessages || bytes > maxBufferedBytes) throw tooMuch('can never hold', held)

    const calledAtMs = clock.monotonic()
    const hasEntered = admission.enter(held.messages, bytes)
    if (!hasEntered && options.whenFull === 'reject') throw tooMuch('has no room left for', held)
    const ticket = progress.begin()
    const call: Call = {
      ...held,
      calledAtMs,
      deadlineMs: calledAtMs + publishTimeoutMs,
      outcomes: new Array(held.messages),
      unsettled: held.messages,
      onSettled(settled) {
        onSettled(settled)
        ticket.end()
        admission.leave(settled.messages, settled.bytes)
      },
    }
    const send = () => {
      for (const part of divide(call, messages, sizes, options)) streamFor(topicName, part, stream).add(part)
    }
    if (hasEntered) send()
    else admission.wait(held.messages, bytes, send)
  }

  function streamFor(topicName: string, part: Part, likely: TopicStream): TopicStream {
    return part.first === 0 ? likely : streamOf(topicName, hasKey(part.messages[0]))
  }

  function tooMuch(verb: string, { messages, bytes }: { messages: number; bytes: number }): PublishError {
    return refusal(
      'buffer_full',
      `The producer ${verb} ${messages} messages with ${bytes} bytes: it holds ${admission.messages} messages with ` +
        `${admission.bytes} bytes; maxBufferedMessages is ${maxBufferedMessages}, maxBufferedBytes ${maxBufferedBytes}.`,
    )
  }

  function publish(topicName: string, message: NewMessage): Promise<PublishResult>
  function publish(topicName: string, messages: readonly NewMessage[]): Promise<PublishResult[]>
  function publish(topicName: string, given: NewMessage | readonly NewMessage[]) {
    // A throw in here becomes the rejection.
    return new Promise<PublishResult | PublishResult[]>((resolve, reject) => {
      if (closed) throw refusal('closed', 'The producer is closed and accepts no more messages.')
      if (!Array.isArray(given)) {
        accept(topicName, [checkMessage(given as NewMessage)], ({ outcomes: [outcome] }) => {
          if (outcome instanceof PublishError) reject(outcome)
          else resolve(outcome as PublishResult)
        })
        return
      }
      if (given.length === 0) return resolve([])
      if (given.length > limits.maxMessagesPerPublish)
        throw refusal(
          'invalid_message',
          `publish was given ${given.length} messages; at most ${limits.maxMessagesPerPublish} are accepted at once`,
        )
      const messages = given.map((message, index) => checkMessage(message, index))
      accept(topicName, messages, ({ outcomes }) => {
        const error = combineErrors(outcomes)
        if (error) reject(error)
        else resolve(outcomes as PublishResult[])
      })
    })
  }

  function flush(): Promise<void> {
    for (const { keyed, unkeyed } of streams.values()) {
      keyed.hurry()
      unkeyed.hurry()
    }
    return progress.settled()
  }

  function close(): Promise<void> {
    closed ??= flush().then(() => {
      closing.abort()
      deps.onClosed()
    })
    return closed
  }

  const traced = deps.tracing ? tracePublish(deps.tracing, publish) : publish
  return { publish: traced, flush, close, [Symbol.asyncDispose]: close }
}

function refusal(code: 'invalid_message' | 'buffer_full' | 'closed', text: string): PublishError {
  return new PublishError(code, text, { outcome: 'not_stored' })
}
