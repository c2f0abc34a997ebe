import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  type Link,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { PmqClientError } from '../errors.ts'
import { sdkVersion } from '../identity.ts'
import type { Message } from '../message.ts'
import { type Check, isObject, resolveOptions } from '../options.ts'
import type { TracedQueue, TraceOutcome, Tracing } from '../tracing/tracing.ts'

/** How spans are made. */
export type OpenTelemetryOptions = {
  /** Makes the spans. @default the tracer `pmq-sdk` of the provider that is registered globally, also if that is later */
  tracer?: Tracer | undefined
}

const checks: Record<keyof OpenTelemetryOptions, Check> = { tracer: isObject }

/**
 * Traces a client with OpenTelemetry, by its conventions for messaging:
 *
 * | span | kind | of | its parent |
 * |---|---|---|---|
 * | `publish <topic>` | producer | each call of `publish`, until it is settled | the active span |
 * | `pull <topic>` | client | each pull that brought messages or failed | none |
 * | `handle <topic>` | consumer | each handler call | the span of its message's publish; for several messages none, but links to those spans |
 *
 * The context travels in the message's head, as the global propagator writes it (`traceparent`, `tracestate`, `baggage`).
 * A message that has one already keeps it, and where the head has no room it is left out. A handler runs with its span
 * active, if a context manager is registered. Spans tell of no body, key or head, and of an error its code or name alone.
 *
 * ```ts
 * const client = createClient({ url, tracing: openTelemetry() })
 * ```
 *
 * Throws a `PmqClientError` with code `invalid_options` for options that cannot be.
 */
export function openTelemetry(given: OpenTelemetryOptions = {}): Tracing {
  const defaults = { tracer: trace.getTracer('pmq-sdk', sdkVersion) }
  const { tracer } = resolveOptions('openTelemetry', given, defaults, checks)

  return {
    publish(topicName, { length }) {
      const attributes = { ...attributesOf('publish', 'send', topicName), ...batchOf(length) }
      const span = tracer.startSpan(`publish ${topicName}`, { kind: SpanKind.PRODUCER, attributes })
      const head: Record<string, string> = {}
      propagation.inject(trace.setSpan(context.active(), span), head)
      return {
        head,
        end(outcome) {
          if ('result' in outcome && outcome.result.length === 1) span.setAttributes(placeOf(outcome.result[0]))
          end(span, outcome)
        },
      }
    },

    pull(queue) {
      // A pull that brings nothing is no news, and there is one every few seconds: so the span is made when it has ended.
      const startTime = Date.now()
      return {
        end(outcome) {
          if ('result' in outcome && outcome.result === 0) return
          const attributes = {
            ...attributesOfQueue('pull', 'receive', queue),
            ...batchOf('result' in outcome ? outcome.result : 1),
          }
          const options = { kind: SpanKind.CLIENT, attributes, startTime }
          end(tracer.startSpan(`pull ${queue.topicName}`, options, ROOT_CONTEXT), outcome)
        },
      }
    },

    handle(messages, call) {
      const [only] = messages.length === 1 ? messages : []
      const parent = only ? contextOf(only) : ROOT_CONTEXT
      const attributes = {
        ...attributesOfQueue('handle', 'process', call),
        ...placeOf(only),
        ...batchOf(messages.length),
      }
      const links = only ? [] : linksTo(messages)
      // Never of what is active: that a call begins where another one ends says nothing of either.
      const span = tracer.startSpan(`handle ${call.topicName}`, { kind: SpanKind.CONSUMER, attributes, links }, parent)
      const active = trace.setSpan(parent, span)
      return {
        run: work => context.with(active, work),
        end(outcome) {
          const { aborted, reason } = call.signal
          const failed = 'result' in outcome && Array.isArray(outcome.result) ? outcome.result.length : 0
          if (failed > 0) span.setAttributes({ 'pmq.failed_message_count': failed, 'error.type': 'messages_failed' })
          if (failed > 0) span.setStatus({ code: SpanStatusCode.ERROR })
          end(span, aborted ? { error: reason } : outcome)
        },
      }
    },
  }
}

function end(span: Span, outcome: TraceOutcome<unknown>): void {
  if ('error' in outcome) {
    // No text, also not as an exception of the span: that of a handler's error may quote a message.
    span.setAttribute('error.type', typeOf(outcome.error)).setStatus({ code: SpanStatusCode.ERROR })
  }
  span.end()
}

function typeOf(error: unknown): string {
  if (error instanceof PmqClientError) return error.code
  return error instanceof Error ? error.name : '_OTHER'
}

function attributesOf(operationName: string, operationType: string, topicName: string): Attributes {
  return {
    'messaging.system': 'pmq',
    'messaging.operation.name': operationName,
    'messaging.operation.type': operationType,
    'messaging.destination.name': topicName,
  }
}

function attributesOfQueue(operationName: string, operationType: string, queue: TracedQueue): Attributes {
  return {
    ...attributesOf(operationName, operationType, queue.topicName),
    'messaging.destination.partition.id': String(queue.queueId),
    'messaging.consumer.group.name': queue.groupName,
  }
}

/** A message has no other id than its place. */
function placeOf(place: { queueId: number; offset: number } | undefined): Attributes {
  if (!place) return {}
  const { queueId, offset } = place
  return { 'messaging.destination.partition.id': String(queueId), 'messaging.message.id': `${queueId}:${offset}` }
}

/** By convention only where it is a batch. */
function batchOf(messages: number): Attributes {
  return messages === 1 ? {} : { 'messaging.batch.message_count': messages }
}

function contextOf(message: Message): Context {
  return propagation.extract(ROOT_CONTEXT, message.head)
}

/** One for each span that published some of the messages. */
function linksTo(messages: readonly Message[]): Link[] {
  const links = new Map<string, Link>()
  for (const message of messages) {
    const spanContext = trace.getSpanContext(contextOf(message))
    if (!spanContext || !isSpanContextValid(spanContext)) continue
    links.set(`${spanContext.traceId}${spanContext.spanId}`, { context: spanContext })
  }
  return [...links.values()]
}
