import assert from 'node:assert/strict'
import { beforeEach, suite, test } from 'node:test'
import { inspect } from 'node:util'
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { MessageHandler } from '../../sdk/src/message.ts'
import { openTelemetry } from '../../sdk/src/otel/open-telemetry.ts'
import type { Tracing } from '../../sdk/src/tracing/tracing.ts'
import { recorder, setUp } from './consumer-setup.ts'
import type { Settings } from './fake-groups.ts'
import { useOpenTelemetry } from './otel-setup.ts'

const otel = useOpenTelemetry()

function scene(handler: MessageHandler, settings: Partial<Settings> = {}, tracing: Tracing = openTelemetry()) {
  const { consumer, ...rest } = setUp({ queues: 1, settings })
  return { ...rest, ...consumer(handler, {}, { tracing }) }
}

suite('a handler call that is traced', () => {
  beforeEach(otel.reset)

  test('of one message is a consumer span below the one that published it', async () => {
    const { clock, client, start, stop } = scene(() => undefined)
    await start()
    await client.publish('orders', { body: 'a' })
    await clock.advance(1_000)
    const [publish] = otel.named('publish orders')
    const [handle, ...others] = otel.named('handle orders')
    assert.equal(others.length, 0)
    assert.ok(publish && handle)
    assert.deepEqual([handle.parentId, handle.traceId], [publish.spanId, publish.traceId])
    assert.deepEqual([handle.kind, handle.linkIds, handle.status.code], [SpanKind.CONSUMER, [], SpanStatusCode.UNSET])
    assert.deepEqual(handle.attributes, {
      'messaging.system': 'pmq',
      'messaging.operation.name': 'handle',
      'messaging.operation.type': 'process',
      'messaging.destination.name': 'orders',
      'messaging.destination.partition.id': '1',
      'messaging.consumer.group.name': 'billing',
      'messaging.message.id': '1:1',
    })
    await stop()
  })

  test('of several messages begins a trace of its own, with one link to each publish', async () => {
    const { clock, log, client, start, stop } = scene(() => undefined, { consumerBatchSize: 10, threadSize: 1 })
    await client.publish('orders', [{ body: 'a' }, { body: 'b' }])
    await client.publish('orders', { body: 'c' })
    log.put(1, ['of a program that does not trace'])
    await client.publish('orders', { body: 'd', head: { traceparent: 'nonsense' } })
    // Not below whatever is active where the consumer is started.
    const active = trace.setSpan(context.active(), otel.tracer.startSpan('start'))
    await context.with(active, start)
    await context.with(active, () => clock.advance(1_000))
    const handles = otel.named('handle orders')
    assert.equal(
      handles.reduce((sum, { attributes }) => sum + Number(attributes['messaging.batch.message_count'] ?? 1), 0),
      5,
    )
    const [handle] = handles.filter(({ linkIds }) => linkIds.length > 0)
    const published = otel.named('publish orders').map(({ spanId }) => spanId)
    assert.deepEqual(handle?.linkIds, published.slice(0, 2))
    assert.equal(handle.parentId, undefined)
    await stop()
  })

  test('runs with its span and the baggage of its message active, to its end', async () => {
    const active: unknown[] = []
    const { clock, client, start, stop } = scene(async () => {
      await new Promise(resolve => setImmediate(resolve))
      const tenant = propagation.getActiveBaggage()?.getEntry('tenant')?.value
      active.push(trace.getActiveSpan()?.spanContext().spanId, tenant)
      otel.tracer.startSpan('query').end()
    })
    await start()
    const baggage = propagation.createBaggage({ tenant: { value: '7' } })
    await context.with(propagation.setBaggage(context.active(), baggage), () => client.publish('orders', { body: 'a' }))
    await clock.advance(1_000)
    const [handle] = otel.named('handle orders')
    assert.deepEqual(active, [handle?.spanId, '7'])
    assert.equal(otel.named('query')[0]?.parentId, handle?.spanId)
    await stop()
  })

  test('that fails says what its error is, and not what it says; each repetition is a span', async () => {
    const errors = [new TypeError('card 4711'), 'card 4711', undefined, new PmqClientError('timeout', 'card 4711')]
    for (const isAsync of [false, true]) {
      otel.reset()
      const left = [...errors]
      const { clock, client, start, stop } = scene(() => {
        if (left.length === 0) return
        const error = left.shift()
        if (isAsync) return Promise.reject(error)
        throw error
      })
      await start()
      await client.publish('orders', { body: 'card 4711', key: 'card 4711', head: { card: '4711' } })
      await clock.advance(10_000)
      const handles = otel.named('handle orders')
      assert.deepEqual(
        handles.map(({ attributes, status }) => [attributes['error.type'], status.code]),
        [
          ['TypeError', SpanStatusCode.ERROR],
          ['_OTHER', SpanStatusCode.ERROR],
          ['_OTHER', SpanStatusCode.ERROR],
          ['timeout', SpanStatusCode.ERROR],
          [undefined, SpanStatusCode.UNSET],
        ],
      )
      assert.ok(!inspect(otel.spans(), { depth: 10 }).includes('4711'))
      await stop()
    }
  })

  test('that names messages which failed says how many', async () => {
    let calls = 0
    const { clock, log, start, stop } = scene(() => (calls++ === 0 ? [1, 3] : []), {
      consumerBatchSize: 3,
      threadSize: 1,
    })
    log.put(1, ['a', 'b', 'c'])
    await start()
    await clock.advance(5_000)
    assert.deepEqual(
      otel
        .named('handle orders')
        .map(({ attributes, status }) => [
          attributes['pmq.failed_message_count'],
          attributes['error.type'],
          status.code,
        ]),
      [
        [2, 'messages_failed', SpanStatusCode.ERROR],
        [undefined, undefined, SpanStatusCode.UNSET],
      ],
    )
    await stop()
  })

  test('whose result no longer counts says why', async () => {
    for (const [timeout, why] of [
      [5, 'handler_timeout'],
      [0, 'aborted'],
    ] as const) {
      otel.reset()
      const { clock, client, start, stop } = scene(
        (_, { signal }) => new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true })),
        { timeout },
      )
      await start()
      await client.publish('orders', { body: 'a' })
      await clock.advance(5_050)
      const stopped = stop()
      await clock.advance(30_000)
      await stopped
      const [handle] = otel.named('handle orders')
      assert.deepEqual([handle?.attributes['error.type'], handle?.status.code], [why, SpanStatusCode.ERROR])
    }
  })

  test('is made in spite of a tracer that fails', async () => {
    const fail = () => {
      throw new Error('broken')
    }
    const end = async () => fail()
    const ends = { publish: fail, pull: () => ({ end }), handle: () => ({ end, run: (call: () => unknown) => call() }) }
    const rejects = { publish: end, pull: end, handle: end }
    for (const tracing of [{ publish: fail, pull: fail, handle: fail }, ends, rejects]) {
      const { seen, handler } = recorder()
      const { clock, log, start, stop } = scene(handler, {}, tracing as unknown as Tracing)
      await start()
      log.put(1, ['a', 'b'])
      await clock.advance(1_000)
      assert.deepEqual(seen, ['1:1', '1:2'])
      await stop()
    }
  })
})

suite('a pull that is traced', () => {
  beforeEach(otel.reset)

  test('is a client span if it brought messages, and none if it did not', async () => {
    const { clock, log, service, start, stop } = scene(() => undefined)
    await start()
    await clock.advance(20_000)
    assert.deepEqual(otel.spans(), [])
    log.put(1, ['a', 'b', 'c'])
    await clock.advance(20_000)
    assert.ok(service.count('pullData') > 3)
    const [pull, ...others] = otel.named('pull orders')
    assert.equal(others.length, 0)
    assert.deepEqual(
      [pull?.kind, pull?.parentId, pull?.status.code],
      [SpanKind.CLIENT, undefined, SpanStatusCode.UNSET],
    )
    assert.deepEqual(pull?.attributes, {
      'messaging.system': 'pmq',
      'messaging.operation.name': 'pull',
      'messaging.operation.type': 'receive',
      'messaging.destination.name': 'orders',
      'messaging.destination.partition.id': '1',
      'messaging.consumer.group.name': 'billing',
      'messaging.batch.message_count': 3,
    })
    await stop()
    assert.equal(otel.named('pull orders').length, 1)
  })

  test('is one that failed if it did, with the code', async () => {
    const { clock, service, start, stop } = scene(() => undefined)
    let failures = 2
    service.onRequest = operation => (operation === 'pullData' && failures-- > 0 ? { kind: 'unreachable' } : undefined)
    await start()
    await clock.advance(20_000)
    assert.deepEqual(
      otel.named('pull orders').map(({ attributes, status }) => [attributes['error.type'], status.code]),
      Array(2).fill(['unreachable', SpanStatusCode.ERROR]),
    )
    await stop()
  })
})
