/**
 * The public face of `pmq-sdk`. What is not named here may change in any version; above all how requests are made,
 * gathered and dispatched.
 *
 * @packageDocumentation
 */
export type { Clock } from '../../core/protocol/clock.ts'
export { type ErrorCode, errorTable } from '../../core/protocol/errors.ts'
export type { Operation } from './api.ts'
export { type Client, createClient } from './client.ts'
export type { ClientOptions } from './client-options.ts'
export type { Consumer, ConsumerStatus, StopOptions } from './consumer.ts'
export type { CallResult, ConsumerListeners } from './consumer-listeners.ts'
export type { ConsumerOptions, Ordering } from './consumer-options.ts'
export {
  type ClientErrorCode,
  clientErrorTable,
  type ErrorDetails,
  PmqClientError,
  PublishError,
  type PublishResult,
} from './errors.ts'
export type { ClientEvent, EventListener, QueueName, TracedMessage } from './events.ts'
export type { ConsumerHealth } from './health.ts'
export type { LifecycleState } from './lifecycle.ts'
export type { Listeners, PreSendListener } from './listeners.ts'
export { type EventLogger, type EventLogLevel, type LogEventsOptions, logEvents } from './log/log-events.ts'
export type {
  HandlerContext,
  HandlerResult,
  ManualCommitOptions,
  Message,
  MessageHandler,
  NewMessage,
} from './message.ts'
export type { NotifyHint } from './notify/hints.ts'
export type { QueueSelection } from './pauses.ts'
export type { CloseOptions, Producer, PublishDone } from './producer.ts'
export type { ProducerOptions } from './producer-options.ts'
export type { HandleTrace, PublishTrace, Trace, TracedQueue, TraceOutcome, Tracing } from './tracing/tracing.ts'
export type { CallOptions, Transport } from './transport.ts'
export type { QueueStatus } from './worker/queue-status.ts'
