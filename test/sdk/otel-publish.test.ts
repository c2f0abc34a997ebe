import assert from 'node:assert/strict'
import { beforeEach, suite, test } from 'node:test'
import { inspect } from 'node:util'
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { limits } from '../../core/protocol/limits.ts'
import { createClient } from '../../sdk/src/client.ts'
import type { PublishError } from '../../sdk/src/errors.ts'
import type { NewMessage } from '../../sdk/src/message.ts'
import { openTelemetry } from '../../sdk/src/otel/open-telemetry.ts'
import type { Tracing } from '../../sdk/src/tracing/tracing.ts'
import { createFakeService } from './fake-service.ts'
import { createManualClock } from './manual-clock.ts'
import { useOpenTelemetry } from './otel-setup.ts'

const otel = useOpenTelemetry()
const full = (keys: number) => Object.fromEntries(Array.from({ length: keys }, (_, index) => [`k${index}`, 'v']))

function setUp(given: Tracing | 'untraced' = openTelemetry()) {
  const tracing = given === 'untraced' ? undefined : given
  const clock = createManualClock()
  const service = createFakeService(clock)
  service.log.createTopic('orders', 1)
  const client = createClient({ transport: service.transport, clock, tracing, onEvent: () => undefined })
  const sent = () => service.requests.flatMap(({ request }) => request.msgs ?? [])
  return { ...client, client, clock, service, sent }
}

suite('a publish that is traced', () => {
  beforeEach(otel.reset)

  test('is a producer span below the active one, whose context the message carries', async () => {
    const { client, sent } = setUp()
    const parent = otel.tracer.startSpan('request')
    await context.with(trace.setSpan(context.active(), parent), () =>
      client.publish('orders', { body: 'a', head: { name: 'value' } }),
    )
    const [span] = otel.spans()
    assert.ok(span)
    assert.deepEqual(
      {
        name: span.name,
        kind: span.kind,
        attributes: span.attributes,
        parentId: span.parentId,
        status: span.status.code,
      },
      {
        name: 'publish orders',
        kind: SpanKind.PRODUCER,
        attributes: {
          'messaging.system': 'pmq',
          'messaging.operation.name': 'publish',
          'messaging.operation.type': 'send',
          'messaging.destination.name': 'orders',
          'messaging.destination.partition.id': '1',
          'messaging.message.id': '1:1',
        },
        parentId: parent.spanContext().spanId,
        status: SpanStatusCode.UNSET,
      },
    )
    assert.deepEqual(sent()[0]?.head, { name: 'value', traceparent: `00-${span.traceId}-${span.spanId}-01` })
    await client.close()
  })

  test('of several messages is one span, which tells how many', async () => {
    const { client, sent } = setUp()
    await client.publish('orders', [{ body: 'a' }, { body: 'b' }])
    const [span, ...others] = otel.spans()
    assert.equal(others.length, 0)
    assert.equal(span?.attributes['messaging.batch.message_count'], 2)
    assert.equal(span.attributes['messaging.message.id'], undefined)
    assert.deepEqual(
      sent().map(({ head }) => head?.traceparent?.split('-')[2]),
      [span.spanId, span.spanId],
    )
    await client.close()
  })

  test('ends when it is settled, with the code of its error and no text', async () => {
    const { client, service } = setUp()
    service.refuse = () => 'a secret'
    await assert.rejects(client.publish('orders', { body: 'another secret' }))
    const [span] = otel.spans()
    assert.equal(span?.status.code, SpanStatusCode.ERROR)
    assert.equal(span.attributes['error.type'], 'refused')
    assert.ok(!inspect(span, { depth: 10 }).includes('secret'))
    await client.close()
  })

  test('that is handed over without waiting is a span like any other, accepted or not', async () => {
    const { client, sent } = setUp()
    assert.equal(client.publishAsync('orders', { body: 'a' }), true)
    assert.equal(client.publishAsync('orders', { body: 'b', tag: 7 } as unknown as NewMessage), false)
    await client.close()
    assert.deepEqual(
      otel.spans().map(({ attributes }) => [attributes['messaging.message.id'], attributes['error.type']]),
      [
        [undefined, 'invalid_message'],
        ['1:1', undefined],
      ],
    )
    assert.equal(sent()[0]?.head?.traceparent?.split('-')[2], otel.spans()[1]?.spanId)
  })

  test('carries the baggage too', async () => {
    const { client, sent } = setUp()
    const baggage = propagation.createBaggage({ tenant: { value: '7' } })
    await context.with(propagation.setBaggage(context.active(), baggage), () => client.publish('orders', { body: 'a' }))
    assert.equal(sent()[0]?.head?.baggage, 'tenant=7')
    await client.close()
  })

  test('goes without its context, or a part of it, where the head has no room', async () => {
    const { client, sent } = setUp()
    const baggage = propagation.createBaggage({ tenant: { value: '7' } })
    const roomFor = (bytes: number) => ({ k: 'v'.repeat(limits.maxHeadBytes - bytes - '{"k":""}'.length) })
    const traceparentBytes = ',"traceparent":""'.length + 55
    const cases: [head: NewMessage['head'], carried: string[]][] = [
      [full(limits.maxHeadKeys), []],
      [full(limits.maxHeadKeys - 1), ['traceparent']],
      [full(limits.maxHeadKeys - 2), ['traceparent', 'baggage']],
      [roomFor(0), []],
      [roomFor(traceparentBytes - 1), []],
      [roomFor(traceparentBytes), ['traceparent']],
      [roomFor(1_000), ['traceparent', 'baggage']],
    ]
    for (const [head] of cases) {
      await context.with(propagation.setBaggage(context.active(), baggage), () =>
        client.publish('orders', { body: 'a', head }),
      )
    }
    assert.deepEqual(
      sent().map(({ head }) => Object.keys(head ?? {}).filter(name => !name.startsWith('k'))),
      cases.map(([, carried]) => carried),
    )
    await client.close()
  })

  test('leaves a context alone that a message has, and the caller its messages', async () => {
    const { client, sent } = setUp()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const given = [{ body: 'a', head: { traceparent } }, { body: 'b' }]
    const copy = structuredClone(given)
    await client.publish('orders', given)
    assert.deepEqual(given, copy)
    assert.equal(sent()[0]?.head?.traceparent, traceparent)
    assert.notEqual(sent()[1]?.head?.traceparent, traceparent)
    await client.close()
  })

  test('refuses what is no message as one that is not traced', async () => {
    const traced = setUp()
    const plain = setUp('untraced')
    for (const wrong of [
      null,
      undefined,
      'a',
      7,
      {},
      { body: 'a', head: 'text' },
      { body: 'a', head: [] },
      { body: 'a', head: null },
      { body: 'a', head: { k: 7 } },
      { body: 'a', head: full(33) },
      [null],
      [{ body: 'a' }, 7],
      Array(1_001).fill({ body: 'a' }),
      Object.defineProperty({ body: 'a' }, 'head', { enumerable: true, get: () => assert.fail('read') }),
    ]) {
      const told = async ({ client }: typeof plain) => {
        const outcome: unknown = await client
          .publish('orders', wrong as NewMessage)
          .catch((error: PublishError) => error.message)
        return outcome
      }
      assert.deepEqual(await told(traced), await told(plain))
    }
    assert.deepEqual(await traced.client.publish('orders', []), [])
    await traced.client.close()
    await plain.client.close()
  })

  test('does not suffer from a tracer that fails', async () => {
    const fail = () => {
      throw new Error('broken')
    }
    for (const tracing of [
      { publish: fail },
      { publish: () => ({ head: {}, end: fail }) },
      { publish: () => undefined },
      { publish: async () => fail() },
      { publish: () => ({ head: {}, end: async () => fail() }) },
    ]) {
      const { client } = setUp(tracing as unknown as Tracing)
      assert.deepEqual(await client.publish('orders', { body: 'a' }), { queueId: 1, offset: 1 })
      await client.close()
    }
  })

  test('changes nothing of a message where there is no tracing', async () => {
    const { client, sent } = setUp('untraced')
    await client.publish('orders', { body: 'a' })
    assert.equal(sent()[0]?.head, undefined)
    assert.deepEqual(otel.spans(), [])
    await client.close()
  })
})

test('openTelemetry refuses an option that it does not know', () => {
  assert.throws(() => openTelemetry({ trace: {} } as object), { code: 'invalid_options' })
})
