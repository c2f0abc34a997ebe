import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ClientEvent } from '../../sdk/src/events.ts'
import { bodies, setUp } from './consumer-setup.ts'
import { settle } from './manual-clock.ts'

suite('the status of a queue', () => {
  test('says what is done with it now, since when, and how far it is', async () => {
    const { clock, consumer, log, service } = setUp({ queues: 1, settings: { consumerBatchSize: 2 } })
    let isFailing = true
    const made = consumer(
      async (_, { signal }) => {
        await clock.sleep(1_000, signal)
        if (isFailing) throw new Error('no')
      },
      { maxPullWaitMs: 0 },
    )
    const status = () => made.status().queues[0] ?? assert.fail()
    await made.start()
    await settle()
    const startedAtMs = clock.now()
    assert.deepEqual(
      [status().pulling, status().pullingUntilMs, status().lastPullAtMs, status().lastHandledAtMs],
      ['waiting', startedAtMs + 50, startedAtMs, undefined],
    )
    service.onRequest = operation => (operation === 'pullData' ? { kind: 'unreachable' } : undefined)
    await clock.advance(1_000)
    assert.equal(status().pulling, 'backing_off')
    assert.ok(status().failedPulls > 0 && (status().pullingUntilMs ?? 0) > clock.now())
    service.onRequest = operation => (operation === 'pullData' ? { kind: 'delay', ms: 60_000 } : undefined)
    await clock.advance(10_000)
    const { pulling, pullingSinceMs, pullingUntilMs } = status()
    assert.deepEqual([pulling, pullingUntilMs], ['asking', undefined])
    assert.ok(pullingSinceMs < clock.now() && pullingSinceMs > startedAtMs)
    service.onRequest = () => undefined
    log.put(1, bodies(5))
    await clock.advanceUntil(() => status().failing === 1, 120_000)
    assert.deepEqual([status().running, status().buffered], [1, 3])
    assert.ok(Math.abs((status().lastHandledAtMs ?? 0) - clock.now()) <= 1)
    assert.deepEqual([status().position, status().committed, status().uncommitted], [5, 0, 2])
    isFailing = false
    const stopped = made.stop()
    assert.deepEqual([status().state, status().pulling], ['leaving', 'waiting'])
    await clock.advance(10_000)
    await stopped
  })
})

suite('the health of a consumer', () => {
  test('is good while it is empty, paused, slow, failing, refused now and then, stopped or not started', async () => {
    const { clock, consumer, log, service, groups } = setUp({ queues: 2, settings: { threadSize: 2 } })
    const made = consumer(
      ([message]) => (message?.queueId === 1 ? assert.fail() : new Promise<void>(() => undefined)),
      { stopTimeoutMs: 0 },
    )
    const isHealthy = async () => {
      for (let step = 0; step < 60; step++) {
        await clock.advance(10_000)
        assert.deepEqual(made.status().health, { isHealthy: true, reasons: [] })
      }
    }
    await isHealthy()
    await made.start()
    await isHealthy()
    for (const queueId of [1, 2]) log.put(queueId, bodies(100))
    await isHealthy()
    let asked = 0
    service.onRequest = () => (asked++ % 3 === 0 ? { kind: 'unreachable' } : undefined)
    await isHealthy()
    groups.changeSettings('billing', { stopFlag: 1 })
    await isHealthy()
    const stopped = made.stop()
    await clock.advance(10_000)
    await stopped
    await isHealthy()
  })

  test('is bad when heartbeats are not answered for longer than a session, and good again when they are', async () => {
    const { clock, consumer, service } = setUp({ queues: 1 })
    const made = consumer(() => undefined)
    await made.start()
    await clock.advance(10_000)
    service.onRequest = () => ({ kind: 'unreachable' })
    await clock.advance(20_000)
    assert.equal(made.status().health.isHealthy, true)
    await clock.advance(15_000)
    const { isHealthy, reasons } = made.status().health
    assert.equal(isHealthy, false)
    assert.match(reasons.join(), /^no heartbeat has been answered for \d+ s; a session lasts 30 s$/)
    service.onRequest = () => undefined
    await clock.advance(10_000)
    assert.deepEqual(made.status().health, { isHealthy: true, reasons: [] })
    await made.stop()
  })

  test('is bad when it was replaced, until it is started again', async () => {
    const { clock, consumer } = setUp({ queues: 1 })
    const first = consumer(() => undefined, { instanceId: 'pod-0' })
    await first.start()
    const second = consumer(() => undefined, { instanceId: 'pod-0' })
    await second.start()
    await clock.advance(30_000)
    assert.deepEqual(first.status().health, {
      isHealthy: false,
      reasons: ['another consumer has taken its instanceId'],
    })
    assert.equal(second.status().health.isHealthy, true)
    await second.stop()
    await first.start()
    assert.equal(first.status().health.isHealthy, true)
    await first.stop()
  })

  test('is bad when a pull does not end, as with a transport that breaks its promise', async () => {
    const { clock, consumer, service } = setUp({ queues: 1 })
    const { transport } = service
    const made = consumer(() => undefined)
    await made.start()
    await clock.advance(1_000)
    service.transport = (path, ...rest) =>
      path.endsWith('pullData') ? new Promise(() => undefined) : transport(path, ...rest)
    await clock.advance(60_000)
    assert.equal(made.status().health.isHealthy, true)
    await clock.advance(30_000)
    assert.match(made.status().health.reasons.join(), /^a pull of queue 1 has not ended for \d+ s$/)
    service.transport = transport
    await made.stop()
  })
})

suite('a trace', () => {
  const traces = (events: ClientEvent[]) =>
    events.flatMap(event => {
      if (event.type !== 'trace') return []
      return [[event.step, event.step === 'committed' ? event.offset : event.messages.map(({ offset }) => offset)]]
    })

  test('tells each step of each message, with its ids and without its body, while the subscription wants it', async () => {
    const { clock, consumer, log, groups } = setUp({ queues: 1, settings: { traceFlag: 1, consumerBatchSize: 3 } })
    let calls = 0
    const { start, stop, events } = consumer(() => (++calls === 1 ? [2] : []))
    await start()
    log.put(
      1,
      ['a', 'b', 'c'].map(n => ({ body: 'secret', traceId: `t${n}`, bizId: `b${n}` })),
    )
    await clock.advance(1_000)
    assert.deepEqual(traces(events), [
      ['pulled', [1, 2, 3]],
      ['began', [1, 2, 3]],
      ['failed', [2]],
      ['began', [2]],
      ['ended', [2]],
      ['committed', 3],
    ])
    const [pulled] = events.filter(({ type }) => type === 'trace')
    assert.deepEqual(pulled, {
      type: 'trace',
      step: 'pulled',
      groupName: 'billing',
      topicName: 'orders',
      queueId: 1,
      messages: ['a', 'b', 'c'].map((n, index) => ({ offset: index + 1, traceId: `t${n}`, bizId: `b${n}` })),
    })
    assert.ok(!JSON.stringify(events).includes('secret'))
    groups.changeSettings('billing', { traceFlag: 0 })
    await clock.advance(15_000)
    const before = traces(events).length
    log.put(1, bodies(3))
    await clock.advance(1_000)
    assert.equal(traces(events).length, before)
    await stop()
  })
})
