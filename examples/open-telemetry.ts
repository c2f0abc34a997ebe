// Spans of publishing and handling, of one trace over two programs: the context travels in the message's head.
// prints: publish traced, handle traced
// prints: one trace
import { propagation, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { createClient } from 'pmq-sdk'
import { openTelemetry } from 'pmq-sdk/otel'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'traced', queues: 1, groupName: 'tracers' })
const done = Promise.withResolvers<void>()

// What a program has that uses OpenTelemetry; here spans are kept in memory.
const exporter = new InMemorySpanExporter()
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
propagation.setGlobalPropagator(new W3CTraceContextPropagator())

// #region open-telemetry
const client = createClient({ url, tracing: openTelemetry() })
// #endregion
const consumer = client.consumer({ groupName: 'tracers', topics: { traced: () => done.resolve() } })
await consumer.start()
await client.publish('traced', { body: 'a message' })
await done.promise
await client.close()

const spans = exporter.getFinishedSpans().filter(({ name }) => !name.startsWith('pull'))
console.log(spans.map(({ name }) => name).join(', '))
if (new Set(spans.map(span => span.spanContext().traceId)).size === 1) console.log('one trace')
