import type { Clock } from '../../../core/protocol/clock.ts'
import { limits } from '../../../core/protocol/limits.ts'
import type { PublishMessage } from '../../../core/protocol/publish.ts'
import { PublishError } from '../errors.ts'
import type { ResolvedProducerOptions } from '../producer-options.ts'
import { createAdmission } from './admission.ts'
import { type Call, divide, hasKey, type Outcome, type Part } from './call.ts'
import { messageBytes } from './check-message.ts'
import { createProgress } from './progress.ts'
import { createTopicStream, type Lane, type TopicStream } from './topic-stream.ts'

/** What an intake is made of. */
export type IntakeDeps = {
  options: ResolvedProducerOptions
  clock: Clock
  /** Sends parts as one request and settles each of them. Never rejects. */
  send(topicName: string, parts: Part[], lane: Lane): Promise<void>
}

/** Takes messages, bounds how many are held, and leads them to the stream of their topic. */
export type Intake = {
  /**
   * Takes messages that are checked, now or, if `mayWait`, as soon as there is room. Throws a `PublishError` if it does
   * not; otherwise `onSettled` is called once, later, with an outcome for each.
   */
  take(
    topicName: string,
    messages: PublishMessage[],
    mayWait: boolean,
    onSettled: (outcomes: readonly Outcome[]) => void,
  ): void
  /** Resolves when everything taken so far is settled; what lingers is sent at once. */
  flush(): Promise<void>
  /** From now on nothing lingers. */
  hurry(): void
  /** Ends what waits for a time to come. */
  end(): void
}

/** How long messages gather behind a request that hangs, before they take another lane. Above a usual round trip. */
const maxGatherMs = 100

/** Makes an intake that has taken nothing. */
export function createIntake({ options, clock, send }: IntakeDeps): Intake {
  const { publishTimeoutMs, maxBufferedMessages, maxBufferedBytes } = options
  const admission = createAdmission({ maxMessages: maxBufferedMessages, maxBytes: maxBufferedBytes })
  const progress = createProgress()
  const ended = new AbortController()
  const streams = new Map<string, { keyed: TopicStream; unkeyed: TopicStream }>()

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
          signal: ended.signal,
          send: (parts, lane) => send(topicName, parts, lane),
        })
      pair = { keyed: make(1), unkeyed: make(options.maxInFlight) }
      streams.set(topicName, pair)
    }
    return isKeyed ? pair.keyed : pair.unkeyed
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

  function* everyStream() {
    for (const { keyed, unkeyed } of streams.values()) yield* [keyed, unkeyed]
  }

  return {
    take(topicName, messages, mayWait, onSettled) {
      const sizes = messages.map(messageBytes)
      const bytes = sizes.reduce((sum, size) => sum + size, 0)
      const stream = streamOf(topicName, hasKey(messages[0]))
      const held = { messages: messages.length, bytes }
      if (held.messages > maxBufferedMessages || bytes > maxBufferedBytes) throw tooMuch('can never hold', held)

      const calledAtMs = clock.monotonic()
      const hasEntered = admission.enter(held.messages, bytes)
      if (!hasEntered && !mayWait) throw tooMuch('has no room left for', held)
      const ticket = progress.begin()
      const call: Call = {
        ...held,
        calledAtMs,
        deadlineMs: calledAtMs + publishTimeoutMs,
        outcomes: new Array(held.messages),
        unsettled: held.messages,
        onSettled(settled) {
          onSettled(settled.outcomes)
          ticket.end()
          admission.leave(settled.messages, settled.bytes)
        },
      }
      const send = () => {
        for (const part of divide(call, messages, sizes, options)) streamFor(topicName, part, stream).add(part)
      }
      if (hasEntered) send()
      else admission.wait(held.messages, bytes, send)
    },
    flush() {
      for (const stream of everyStream()) stream.hurry(false)
      return progress.settled()
    },
    hurry() {
      for (const stream of everyStream()) stream.hurry(true)
    },
    end: () => ended.abort(),
  }
}

/** A publish of which nothing was taken. */
export function refusal(code: 'invalid_message' | 'buffer_full' | 'closed', text: string): PublishError {
  return new PublishError(code, text, { outcome: 'not_stored' })
}
