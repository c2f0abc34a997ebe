import { AsyncLocalStorage } from 'node:async_hooks'
import { after, before } from 'node:test'
import { type Context, type ContextManager, context, propagation, ROOT_CONTEXT, trace } from '@opentelemetry/api'
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'

/** OpenTelemetry as a program sets it up, with all spans kept in memory. For the tests of a file. */
export function useOpenTelemetry() {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  before(() => {
    trace.setGlobalTracerProvider(provider)
    context.setGlobalContextManager(createContextManager())
    propagation.setGlobalPropagator(
      new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
    )
  })
  after(async () => {
    await provider.shutdown()
    trace.disable()
    context.disable()
    propagation.disable()
  })

  /** The spans that have ended, in that order, as texts and numbers. */
  function spans() {
    return exporter.getFinishedSpans().map(span => ({
      name: span.name,
      kind: span.kind,
      attributes: span.attributes,
      status: span.status,
      events: span.events,
      spanId: span.spanContext().spanId,
      traceId: span.spanContext().traceId,
      parentId: span.parentSpanContext?.spanId,
      linkIds: span.links.map(link => link.context.spanId),
    }))
  }

  return {
    spans,
    named: (name: string) => spans().filter(span => span.name === name),
    reset: () => exporter.reset(),
    tracer: trace.getTracer('test'),
  }
}

function createContextManager(): ContextManager {
  const storage = new AsyncLocalStorage<Context>()
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, work, self, ...args) => storage.run(active, () => work.apply(self as never, args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  }
  return manager
}
