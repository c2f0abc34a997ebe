import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { PullResponse } from '../../core/protocol/pull.ts'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'

suite('tags', () => {
  test('messages without one of them are passed over: no handler call, no lag, few pulls', async () => {
    const { clock, consumer, log, service, committed } = setUp({ queues: 1, settings: { tag: 'a,c' } })
    const { start, stop, status } = consumer(() => assert.fail('handled'))
    await start()
    await clock.advance(100)
    const before = service.count('pullData')
    log.put(
      1,
      Array.from({ length: 990 }, (_, index) => ({ body: `${index}`, tag: 'b' })),
    )
    log.put(1, bodies(10))
    await clock.advance(2_000)
    assert.deepEqual(committed(), [1_000])
    assert.equal(status().queues[0]?.buffered, 0)
    assert.ok(service.count('pullData') - before <= 3)
    await stop()
  })

  test('select exactly, among others, and may be changed while it runs', async () => {
    const { clock, consumer, log, groups, committed } = setUp({ queues: 1, settings: { tag: 'a', threadSize: 5 } })
    const { seen, handler } = recorder()
    const { start, stop } = consumer(handler)
    await start()
    const tags = ['a', 'b', 'a', '', 'aa', 'a']
    log.put(
      1,
      tags.map(tag => ({ body: tag, tag })),
    )
    await clock.advance(10_000)
    assert.deepEqual(seen, ['1:1', '1:3', '1:6'])
    groups.changeSettings('billing', { tag: 'b,aa' })
    await clock.advance(15_000)
    log.put(
      1,
      tags.map(tag => ({ body: tag, tag })),
    )
    await clock.advance(10_000)
    assert.deepEqual(seen.slice(3), ['1:8', '1:11'])
    groups.changeSettings('billing', { tag: '' })
    await clock.advance(15_000)
    log.put(1, ['x'])
    await clock.advance(10_000)
    assert.deepEqual(seen.slice(5), ['1:13'])
    assert.deepEqual(committed(), [13])
    await stop()
  })

  test('what is passed over behind a message that is not done is not committed before it, and bounded', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1, settings: { tag: 'a', threadSize: 2 } })
    const { start, stop, status } = consumer(() => new Promise(() => undefined), {
      maxBufferedMessages: 100,
      stopTimeoutMs: 0,
    })
    await start()
    log.put(1, [{ body: 'x', tag: 'a' }])
    for (let batch = 0; batch < 50; batch++) log.put(1, bodies(100))
    await clock.advance(60_000)
    assert.deepEqual([committed(), status().queues[0]?.uncommitted], [[0], 100])
    const stopped = stop()
    await clock.advance(1)
    await stopped
  })
})

suite('a delay', () => {
  const delayed = (seconds: number, more = {}) => ({ queues: 1, settings: { delayProcessTime: seconds, ...more } })

  test('hands a message out that long after its append, never before, and holds no slot', async () => {
    const { clock, consumer, log, committed } = setUp(delayed(60, { consumerBatchSize: 1 }))
    const atMs: number[] = []
    const { start, stop, status } = consumer(() => void atMs.push(clock.monotonic()))
    await start()
    for (let index = 0; index < 5; index++) {
      log.put(1, ['x'])
      await clock.advance(10_000)
    }
    assert.deepEqual([status().queues[0]?.delayed, status().queues[0]?.running, atMs], [5, 0, []])
    await clock.advance(60_000)
    const first = atMs[0] ?? 0
    assert.deepEqual(
      atMs.map(ms => ms - first),
      [0, 10_000, 20_000, 30_000, 40_000],
    )
    assert.equal(first, 60_000)
    assert.deepEqual(committed(), [5])
    await stop()
    assert.equal(clock.sleeping, 0)
  })

  test('is counted from the append, so what has waited elsewhere waits no longer than the rest', async () => {
    const { clock, consumer, log } = setUp(delayed(60))
    const { seen, handler } = recorder()
    log.put(1, ['old'])
    await clock.advance(45_000)
    const { start, stop } = consumer(handler)
    await start()
    await clock.advance(14_000)
    assert.deepEqual(seen, [])
    await clock.advance(2_000)
    assert.deepEqual(seen, ['1:1'])
    await stop()
  })

  for (const jumpMs of [-86_400_000, 86_400_000]) {
    test(`is neither shortened, lengthened nor reordered by a clock that jumps ${jumpMs > 0 ? 'on' : 'back'}`, async () => {
      const { clock, consumer, log, service } = setUp(delayed(60, { consumerBatchSize: 1 }))
      let jumpedMs = 0
      const { transport } = service
      // The service's clock: what it stamps batches with, and what it says that it is.
      service.transport = async (path, ...rest) => {
        const answer = await transport(path, ...rest)
        if (path.endsWith('pullData')) (answer as PullResponse).nowMs = clock.now() + jumpedMs
        return answer
      }
      const atMs: number[] = []
      const { seen, handler } = recorder()
      const { start, stop } = consumer(messages => {
        atMs.push(clock.monotonic())
        return handler(messages)
      })
      await start()
      for (let index = 0; index < 6; index++) {
        if (index === 3) jumpedMs = jumpMs
        log.put(1, ['x'])
        for (const batch of log.queues.get(1)?.batches.slice(-1) ?? []) batch.time += jumpedMs
        await clock.advance(1_000)
      }
      await clock.advance(70_000)
      assert.deepEqual(seen, upTo(1, 6))
      assert.deepEqual(atMs, [60_000, 61_000, 62_000, 63_000, 64_000, 65_000])
      await stop()
    })
  }

  test('that is changed counts at once, for what waits too', async () => {
    const { clock, consumer, log, groups } = setUp(delayed(43_200))
    const { seen, handler } = recorder()
    const { start, stop, status } = consumer(handler)
    await start()
    log.put(1, bodies(3))
    await clock.advance(100_000)
    assert.deepEqual([seen, status().queues[0]?.delayed], [[], 3])
    groups.changeSettings('billing', { delayProcessTime: 130 })
    await clock.advance(25_000)
    assert.deepEqual(seen, [])
    await clock.advance(6_000)
    assert.deepEqual(seen, upTo(1, 3))
    log.put(1, bodies(3))
    await clock.advance(1_000)
    groups.changeSettings('billing', { delayProcessTime: 0 })
    await clock.advance(15_000)
    assert.deepEqual(seen, upTo(1, 6))
    await stop()
  })

  test('what waits is bounded like the buffer, and none of it is lost', async () => {
    const { clock, consumer, log, committed } = setUp(delayed(3_600, { consumerBatchSize: 100 }))
    const { seen, handler } = recorder()
    const { start, stop, status } = consumer(handler, { maxBufferedMessages: 500, maxPullBytes: 1 })
    await start()
    for (let batch = 0; batch < 50; batch++) log.put(1, bodies(100))
    await clock.advance(1_800_000)
    const { buffered = 0, delayed: waiting } = status().queues[0] ?? {}
    assert.ok(buffered <= 600 && waiting === 500, `${buffered} buffered, ${waiting} waiting`)
    await clock.advance(3_600_000)
    assert.deepEqual([seen, committed()], [upTo(1, 5_000), [5_000]])
    await stop()
  })

  test('a message that is due goes before one that waits longer: due order, where delays differ', async () => {
    const retry = { retryDelay: 1, retryBackoffRate: 60, maxRetryDelay: 21_600 }
    const settings = { ...retry, consumerBatchSize: 1, maxPullTime: 60 }
    const { clock, consumer, log, committed, groups } = setUp({ queues: 1, settings, hasFailTopics: true })
    const { seen, handler } = recorder()
    const { start, stop } = consumer(handler, { maxPullWaitMs: 60_000 })
    await start()
    // 6 hours, a minute, a second.
    log.put(
      2,
      [3, 2, 1].map(retryCount => ({ body: 'x', retryCount })),
    )
    await clock.advance(2_000)
    assert.deepEqual(seen, ['2:3'])
    await clock.advance(60_000)
    assert.deepEqual([seen, groups.committed('billing', 2)], [['2:3', '2:2'], 0])
    await clock.advance(21_600_000)
    assert.deepEqual([seen, groups.committed('billing', 2), committed()], [['2:3', '2:2', '2:1'], 3, [0]])
    await stop()
  })

  test('what waits and is not due at a stop is left to the next owner', async () => {
    const { clock, consumer, log, committed } = setUp(delayed(60))
    const { seen, handler } = recorder()
    const first = consumer(handler)
    await first.start()
    log.put(1, bodies(3))
    await clock.advance(30_000)
    await first.stop()
    assert.deepEqual([committed(), clock.sleeping], [[0], 0])
    const second = consumer(handler)
    await second.start()
    await clock.advance(40_000)
    assert.deepEqual([seen, committed()], [upTo(1, 3), [3]])
    await second.stop()
  })
})
