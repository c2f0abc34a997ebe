/** A message to publish. Everything but `body` may be left out. */
export type NewMessage = {
  /** The content, opaque to the service; at most 256 KiB as UTF-8. */
  body: string
  /** Messages of one key land in one queue, in the order in which they were published. 1 to 200 characters. */
  key?: string | undefined
  /** A word that consumers may select by; at most 1,000 characters. */
  tag?: string | undefined
  /** The sender's own id for it, to find it by; at most 200 characters. */
  bizId?: string | undefined
  /** Names and values that travel beside the body; at most 32 entries and 8 KiB. */
  head?: Readonly<Record<string, string>> | undefined
  /** Ties the message to a trace; at most 200 characters. */
  traceId?: string | undefined
}

/** A message as a handler gets it. Texts that the publisher left out are empty. */
export type Message = {
  readonly topicName: string
  readonly queueId: number
  /** Its place in the queue: 1, 2, 3, … without a hole. */
  readonly offset: number
  readonly key: string | undefined
  readonly tag: string
  readonly bizId: string
  readonly head: Readonly<Record<string, string>>
  readonly body: string
  readonly traceId: string
  /** How often it has failed before. */
  readonly retryCount: number
  /** When the service stored it, milliseconds since 1970. */
  readonly publishedAtMs: number
}

/** What a handler call is told besides its messages. */
export interface HandlerContext {
  /**
   * Aborts when the result no longer counts: the queue has another owner by now, its offset was reset, or the time to
   * finish before a stop is over. The messages are then handed out again.
   */
  readonly signal: AbortSignal
  readonly groupName: string
  readonly topicName: string
  readonly queueId: number
}

/**
 * Works on messages of one queue, in offset order, `consumerBatchSize` of them a call. Up to `threadSize` calls of one
 * queue run at once; with a `threadSize` of 1 no message is handed out before the ones before it are done.
 *
 * | the handler | then |
 * |---|---|
 * | returns, or its promise resolves | the messages are done and will be committed |
 * | throws or rejects, with anything, `undefined` too | the call is repeated with the same messages after a pause of 100 ms that doubles up to 30 s; nothing is committed past them, nothing is dropped |
 * | does not end | its slot stays taken; nothing is committed past its messages |
 * | ends in any way after `signal` has aborted | the result is ignored; the messages are handed out again, here or elsewhere |
 *
 * Delivery is at least once: after a crash, what was not committed is handed out again. Handlers must bear repetition.
 */
export type MessageHandler = (messages: readonly Message[], context: HandlerContext) => void | Promise<void>
