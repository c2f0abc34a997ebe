import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'
import { settle } from './manual-clock.ts'

const queueIds = [1, 2, 3, 4]

suite('the stop flag', () => {
  test('holds through every change of the assignment: nothing is pulled, kept or handled, until it ends', async () => {
    const { clock, consumer, log, service, groups, committed } = setUp({ queues: 4, settings: { stopFlag: 1 } })
    const { seen, handler } = recorder()
    for (const queueId of queueIds) for (let batch = 0; batch < 50; batch++) log.put(queueId, bodies(100))
    const first = consumer(handler)
    await first.start()
    const statuses = () =>
      first.status().queues.map(({ state, buffered, running }) => `${state} ${buffered} ${running}`)
    for (let change = 0; change < 5; change++) {
      const version = groups.version('billing')
      const second = consumer(handler)
      await second.start()
      await clock.advance(30_000)
      assert.deepEqual(statuses(), ['paused 0 0', 'paused 0 0'])
      await second.stop()
      await clock.advance(30_000)
      assert.deepEqual(
        statuses(),
        Array.from({ length: 4 }, () => 'paused 0 0'),
      )
      assert.notEqual(groups.version('billing'), version)
    }
    assert.deepEqual([seen.length, service.count('pullData'), first.count('handler_failed')], [0, 0, 0])
    groups.changeSettings('billing', { stopFlag: 0 })
    await clock.advance(30_000)
    assert.deepEqual(committed(), [5_000, 5_000, 5_000, 5_000])
    assert.deepEqual(seen.toSorted(), queueIds.flatMap(queueId => upTo(queueId, 5_000)).toSorted())
    await first.stop()
  })

  test('set amid a backlog lets what runs end, and what is buffered neither grow nor be handed out', async () => {
    const { clock, consumer, log, service, groups, committed } = setUp({
      queues: 4,
      settings: { consumerBatchSize: 1 },
    })
    for (const queueId of queueIds) for (let batch = 0; batch < 50; batch++) log.put(queueId, bodies(100))
    let calls = 0
    const first = consumer(
      async (_, { signal }) => {
        calls++
        await clock.sleep(300, signal)
      },
      { maxBufferedMessages: 150, maxPullBytes: 1 },
    )
    await first.start()
    await clock.advance(10_000)
    groups.changeSettings('billing', { stopFlag: 1 })
    await clock.advance(15_000)
    const done = [calls, committed()]
    const pulls = service.count('pullData')
    for (let change = 0; change < 5; change++) {
      const second = consumer(() => void calls++, { maxBufferedMessages: 150, maxPullBytes: 1 })
      await second.start()
      await clock.advance(30_000)
      for (const { buffered } of [...first.status().queues, ...second.status().queues]) assert.ok(buffered < 250)
      await second.stop()
      await clock.advance(30_000)
    }
    assert.deepEqual([calls, committed()], done)
    assert.equal(service.count('pullData'), pulls)
    assert.deepEqual(
      first.status().queues.map(({ state, running }) => [state, running]),
      queueIds.map(() => ['paused', 0]),
    )
    await first.stop()
  })
})

suite('a pause of the application', () => {
  test('whose selection is misspelt is refused, since it would be of everything', async () => {
    const { consumer, clock } = setUp({ queues: 1 })
    const { pause, resume, status, start, stop } = consumer(() => undefined)
    await start()
    await clock.advance(1_000)
    for (const wrong of [{ topic: 'orders' }, { queueId: 0 }, { topicName: 7 }, 'orders'] as object[]) {
      assert.throws(() => pause(wrong), { code: 'invalid_options' })
      assert.throws(() => resume(wrong), { code: 'invalid_options' })
    }
    assert.deepEqual(status().queues[0]?.pausedBy, [])
    await stop()
  })

  test('holds through rebalances, resets, a stop and a start: nothing is handled, and memory stays bounded', async () => {
    const { clock, consumer, log, service, groups, committed } = setUp({ queues: 4 })
    const { seen, handler } = recorder()
    const first = consumer(handler)
    first.pause()
    await first.start()
    for (const queueId of queueIds) for (let batch = 0; batch < 25; batch++) log.put(queueId, bodies(1_000))
    for (let change = 0; change < 5; change++) {
      const second = consumer(handler)
      second.pause()
      await second.start()
      await clock.advance(30_000)
      await second.stop()
      await clock.advance(30_000)
    }
    for (const queueId of queueIds) groups.reset('billing', queueId, 5)
    await clock.advance(30_000)
    await first.stop()
    await first.start()
    await clock.advance(30_000)
    const told = first.status().queues.map(({ state, pausedBy, pulling, buffered }) => ({
      state,
      pausedBy,
      pulling,
      buffered,
    }))
    assert.deepEqual(
      told,
      queueIds.map(() => ({ state: 'paused', pausedBy: ['consumer'], pulling: 'paused', buffered: 0 })),
    )
    assert.deepEqual([seen.length, service.count('pullData')], [0, 0])
    first.resume()
    await clock.advance(60_000)
    assert.deepEqual(committed(), [25_000, 25_000, 25_000, 25_000])
    assert.equal(seen.length, 4 * 24_995)
    await first.stop()
  })

  test('is of one queue or of a topic with its fail topic, and ends by the same selection, or by all', async () => {
    const { consumer } = setUp({ queues: 2, hasFailTopics: true })
    const { start, stop, pause, resume, status } = consumer(() => undefined)
    await start()
    await settle()
    const paused = () =>
      status()
        .queues.filter(({ state }) => state === 'paused')
        .map(({ queueId }) => queueId)
    pause({ queueId: 2 })
    assert.deepEqual(paused(), [2])
    pause({ topicName: 'orders' })
    assert.deepEqual(paused(), [1, 2, 3])
    resume({ topicName: 'orders' })
    assert.deepEqual(paused(), [2])
    pause({ topicName: 'billing_orders_fail' })
    pause({ topicName: 'orders', queueId: 7 })
    assert.deepEqual(paused(), [2, 3])
    resume()
    assert.deepEqual(paused(), [])
    await stop()
  })

  test('amid a backlog lets what runs end, keeps what is buffered, and loses none of it', async () => {
    const { clock, consumer, log, committed, groups } = setUp({ queues: 1, settings: { consumerBatchSize: 1 } })
    const { seen, handler } = recorder()
    const { start, stop, pause, resume, status } = consumer(async (messages, { signal }) => {
      handler(messages)
      await clock.sleep(100, signal)
    })
    await start()
    log.put(1, bodies(100))
    await clock.advance(1_000)
    pause({ topicName: 'orders' })
    groups.changeSettings('billing', { stopFlag: 1 })
    await clock.advance(60_000)
    const { buffered = 0, pausedBy, running } = status().queues[0] ?? {}
    assert.deepEqual([seen.length + buffered, running, pausedBy], [100, 0, ['stop_flag', 'consumer']])
    groups.changeSettings('billing', { stopFlag: 0 })
    await clock.advance(60_000)
    assert.equal(seen.length + buffered, 100)
    resume()
    await clock.advance(60_000)
    assert.deepEqual([seen, committed()], [upTo(1, 100), [100]])
    await stop()
  })
})
