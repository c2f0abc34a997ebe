import type { PublishResult } from '../errors.ts'
import type { HandlerContext, Message, NewMessage } from '../message.ts'

/**
 * Follows the work of a client from outside, as `openTelemetry()` of `pmq-sdk/otel` does. What its methods throw or reject with is
 * ignored, except in `run`; without a `Tracing` none of this is called.
 */
export interface Tracing {
  /** Messages are about to be published. */
  publish(topicName: string, messages: readonly NewMessage[]): PublishTrace
  /** A queue is about to be asked for messages. Never ended if the consumer gives the request up. */
  pull(queue: TracedQueue): Trace<number>
  /** A handler is about to be called. */
  handle(messages: readonly Message[], context: HandlerContext): HandleTrace
}

/** A queue of a group. */
export type TracedQueue = { readonly groupName: string; readonly topicName: string; readonly queueId: number }

/** How something ended. */
export type TraceOutcome<Result> = { readonly result: Result } | { readonly error: unknown }

/** Something that has begun. */
export type Trace<Result> = { end(outcome: TraceOutcome<Result>): void }

/** A publish that has begun. */
export type PublishTrace = Trace<readonly PublishResult[]> & {
  /**
   * What the messages are to carry in their heads, the most important first. A message that has one of the names already
   * keeps its own, and what does not fit into a head is left out.
   */
  readonly head: Readonly<Record<string, string>>
}

/** A handler call that has begun; ends with what the handler has returned. */
export type HandleTrace = Trace<unknown> & {
  /** Calls the handler, at once, and gives back what it returns or throws. */
  run<Returned>(call: () => Returned): Returned
}
