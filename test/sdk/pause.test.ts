import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'

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
