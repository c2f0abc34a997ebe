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

/**
 * A message as a handler gets it, a copy for each call: whatever is done to it, what is repeated or goes to the fail topic is
 * what was published. Texts that the publisher left out are empty.
 */
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
  /**
   * How often it has failed before and gone to the fail topic, since an operator has resent it if one did; failures in place
   * are not counted here.
   */
  readonly retryCount: number
  /** When the service stored it, milliseconds since 1970. */
  readonly publishedAtMs: number
  /** The address that its publisher gave as its own; of one that comes from the fail topic, that of who has failed with it. */
  readonly sendIp: string
}

/** What a handler call is told besides its messages. */
export interface HandlerContext {
  /**
   * Aborts when the result no longer counts: the call has taken longer than the subscription lets it (`timeout`), the
   * queue has another owner by now, its offset was reset, or the time to finish before a stop is over. `signal.reason`
   * tells. Unless they go to the fail topic, the messages are handed out again.
   */
  readonly signal: AbortSignal
  /** The consumer group that the call is made for. */
  readonly groupName: string
  /** The topic that all messages of the call are from. */
  readonly topicName: string
  /** The queue that all messages of the call are from. */
  readonly queueId: number
  /**
   * For a consumer with `commit: 'manual'`: says that everything of the queue that was handed out up to `offset` is done,
   * but for the `failed`, which go to the fail topic first. May be called after the handler has returned, from any of the
   * queue's calls, and without `this`. Resolves when the service has recorded it, which it does in offset order: while
   * something before `offset` has not been handed out yet, or is on its way to the fail topic, it waits for that. What
   * becomes of a message is decided by the first commit that speaks of it: a failure is sent once, and is `invalid_commit`
   * where the message was declared done before.
   *
   * Await the promise, or catch what it rejects with: otherwise a rejection is unhandled, which ends a Node process.
   *
   * Rejects with a `PmqClientError`: `invalid_commit` where nothing like that was handed out, where there is no fail topic
   * for what failed, or the consumer commits by itself; `handler_timeout` if this call has taken too long; `fenced` if the
   * queue is another consumer's by now; `closed` if the queue was given up before the service has answered.
   */
  readonly commit: (offset: number, options?: ManualCommitOptions) => Promise<void>
}

/** What else there is to say of messages that are committed. */
export type ManualCommitOptions = {
  /** Offsets of those that failed, none above the offset that is committed. @default none */
  failed?: readonly number[] | undefined
}

/** What a handler may return: nothing, or the offsets of those of its messages that failed. */
// biome-ignore lint/suspicious/noConfusingVoidType: it is the type of a function that returns nothing.
export type HandlerResult = void | readonly number[]

/**
 * Works on messages of one queue, in offset order, `consumerBatchSize` of them a call. Up to `threadSize` calls of one
 * queue run at once; with a `threadSize` of 1 no message is handed out before the ones before it are done.
 *
 * | the handler | then |
 * |---|---|
 * | returns nothing, or its promise resolves with nothing | the messages are done and will be committed |
 * | returns offsets of its messages | those have failed, the others are done |
 * | throws or rejects, with anything, `undefined` too | all messages of the call have failed |
 * | returns anything else, or an offset that is not of the call | all messages of the call have failed |
 * | throws a `PmqClientError` with code `postponed` | it has not begun with them: they are handed out again in place, and nothing counts as a failure |
 * | takes longer than the subscription's `timeout` | its signal aborts, all its messages have failed, its slot is free; what it ends with is ignored |
 * | does not end, and there is no `timeout` | its slot stays taken; nothing is committed past its messages |
 * | ends in any way after `signal` has aborted | the result is ignored |
 * | ends its process | the queue's next owner hands messages out one at a time; one that is lost as well had the message that has failed |
 * | throws in an `abort` listener of its `signal` | Node takes that for an uncaught exception, which ends the process; nobody but the listener can catch it |
 *
 * What has failed goes to the group's fail topic for this topic and is handed out again from there, as often and as late
 * as the subscription says; the queue moves on when the service has it. Where there is no fail topic (a broadcast group)
 * it is handed out again in place, after a pause of 100 ms that doubles up to 30 s, until it succeeds; with the
 * subscription's `retryInPlace` so too, `retryCount` times, and then it goes to the fail topic to stay there. Nothing is
 * committed past a failed message before the service has it elsewhere, and nothing is dropped.
 *
 * A postponed call is repeated after the error's `retryAfterMs`, and after 100 ms at least, doubling up to 30 s, as long as it
 * takes: for a handler that hands its work on, and cannot. Its queue waits for it, as for a failure in place.
 *
 * Delivery is at least once: after a crash, what was not committed is handed out again. Handlers must bear repetition.
 */
export type MessageHandler = (
  messages: readonly Message[],
  context: HandlerContext,
) => HandlerResult | Promise<HandlerResult>
