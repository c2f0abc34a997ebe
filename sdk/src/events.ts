import type { Operation } from './api.ts'
import type { PmqClientError, PublishError } from './errors.ts'
import { callSafely } from './listeners.ts'

/** Whose queue an event is about: the group's, of the topic. */
export type QueueName = { groupName: string; topicName: string; queueId: number }

/** A message as a trace names it. */
export type TracedMessage = { offset: number; traceId: string; bizId: string }

/** What a client tells about its work: everything that a log or a metric would want to know and no call returns. */
export type ClientEvent =
  /** A request failed. It is tried again after `retryInMs`; if that is absent, it is not. */
  | {
      type: 'request_failed'
      operation: Operation
      topicName?: string
      queueId?: number
      groupName?: string
      error: PmqClientError
      retryInMs?: number
    }
  /**
   * A `publishAsync` without `onDone` failed; `messages` of it are not stored, or may be, as `error.outcome` says. They
   * will not be sent again.
   */
  | { type: 'publish_failed'; topicName: string; messages: number; error: PublishError }
  /** A function that was passed to a call has thrown or rejected. */
  | { type: 'callback_failed'; callback: 'onDone'; topicName: string; error: unknown }
  /** The consumer is known to the service and a member of its group. */
  | { type: 'registered'; groupName: string; consumerId: number; consumerName: string }
  /** The service has given the consumer up, since it heard no heartbeat in time. It registers again by itself. */
  | { type: 'expired'; groupName: string; consumerId: number }
  /**
   * Another consumer of the group was started with the same `instanceId` and has taken this one's place. This one stops,
   * and does not come back by itself: two of them would take the place from each other for ever.
   */
  | { type: 'replaced'; groupName: string; consumerId: number; instanceId: string; error: PmqClientError }
  /** The consumer has a handler for a topic that its group does not subscribe to: it gets none of its messages. */
  | { type: 'not_subscribed'; groupName: string; topicName: string }
  /** The consumer has left its group. */
  | { type: 'deregistered'; groupName: string; consumerId: number }
  /**
   * What the consumer worked with was not what the service says, and still was not when it looked again: its queues, one of
   * their settings or the version of the group, by these names. It works with what the service says now.
   */
  | { type: 'settings_differ'; groupName: string; names: readonly string[] }
  /** Work on a queue begins behind `offset`. */
  | ({ type: 'assigned'; offset: number; offsetVersion: number } & QueueName)
  /**
   * Owners of the queue were lost, `deaths` in a row, and none has got on: a message may be ending their processes. So its
   * messages are handed out one at a time, until that is done which the last one can have had in hand. `suspectOffset` is
   * what it had alone, if that is known: it counts as failed (`handler_failed`, with an error `consumer_lost`).
   */
  | ({ type: 'careful'; deaths: number; suspectOffset?: number } & QueueName)
  /**
   * A queue is to be given up: nothing more of it is handed out, and what was is to be done with, or by hand committed, within
   * `timeoutMs`.
   */
  | ({ type: 'revoking'; timeoutMs: number } & QueueName)
  /** A queue was given up in order, with everything up to `offset` done. */
  | ({ type: 'revoked'; offset: number; offsetVersion: number } & QueueName)
  /** The consumer has stopped, and the queue waits for the next one of its `instanceId`, with everything up to `offset` done. */
  | ({ type: 'kept'; offset: number; offsetVersion: number } & QueueName)
  /** The queue is not the group's any more: it was removed, or the group has left its topic. Work on it has ended. */
  | ({ type: 'removed'; offset: number; offsetVersion: number } & QueueName)
  /** A commit was refused: the queue has another owner by now. Work on it has ended; what was not committed is redone there. */
  | ({ type: 'fenced'; offset: number; offsetVersion: number } & QueueName)
  /** The offset of a queue was set by hand. Work goes on behind `offset`. */
  | ({ type: 'reset'; offset: number; offsetVersion: number } & QueueName)
  /** `count` offsets from `firstOffset` on are gone: past retention before this group came to them. */
  | ({ type: 'skipped'; firstOffset: number; count: number } & QueueName)
  /**
   * Messages of a handler call have failed. Those that are handed out again in place are so after `retryInMs`; the others
   * go to `failTopicName`. With neither, the queue is being given up, and its next owner has them again.
   */
  | ({
      type: 'handler_failed'
      /** Of the call. */
      firstOffset: number
      lastOffset: number
      /** Those that have failed. */
      failedOffsets: readonly number[]
      /** How often in a row this call has failed, this time included. */
      failures: number
      /** What the handler threw or what was wrong with it; undefined where it named the offsets. */
      error: unknown
      retryInMs?: number
      failTopicName?: string
    } & QueueName)
  /**
   * A handler call has not begun with its messages. They are handed out again after `retryInMs`; if that is absent, by the
   * queue's next owner.
   */
  | ({
      type: 'handler_postponed'
      firstOffset: number
      lastOffset: number
      /** What the handler threw. */
      error: PmqClientError
      retryInMs?: number
    } & QueueName)
  /** The service has stored messages that failed in the fail topic; `deadOffsets` of them are not handed out again. */
  | ({
      type: 'failures_stored'
      failTopicName: string
      offsets: readonly number[]
      deadOffsets: readonly number[]
    } & QueueName)
  /** A handler call, or the `preHandle` before it, has been running for `runningMs`; told again and again while it does. */
  | ({ type: 'handler_slow'; offsets: readonly number[]; runningMs: number } & QueueName)
  /** A listener of the consumer threw or rejected. */
  | ({ type: 'listener_failed'; listener: 'filter' | 'preHandle' | 'postHandle'; error: unknown } & QueueName)
  /** What happens to messages of a subscription whose `trace` is on. `committed` says how far only. */
  | ({ type: 'trace'; step: 'pulled' | 'began' | 'ended' | 'failed'; messages: readonly TracedMessage[] } & QueueName)
  | ({ type: 'trace'; step: 'committed'; offset: number } & QueueName)
  /** The group has a queue for this consumer, of a topic that it has no handler for. Its messages wait. */
  | ({ type: 'no_handler' } & QueueName)

/** Takes the events of a client. Must return soon; what it throws or rejects with is ignored. */
export type EventListener = (event: ClientEvent) => void

/** Makes a listener safe to call from the loops: nothing that it does may end them. */
export function containListener(listener: EventListener | undefined): EventListener {
  if (!listener) return () => undefined
  // A listener's failure has nowhere to go: it is the place where failures are reported to.
  return event =>
    callSafely(
      () => listener(event),
      () => undefined,
    )
}
