import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'
import { seededRandom } from './manual-clock.ts'

suite('handlers', () => {
  test('may work for hours: one run, one commit, no other owner, since heartbeats do not wait for them', async () => {
    const { clock, consumer, log, groups, service, committed } = setUp({
      queues: 1,
      settings: { consumerBatchSize: 1 },
    })
    let runs = 0
    const made = consumer(async (_, { signal }) => {
      runs++
      await clock.sleep(6 * 3_600_000, signal)
    })
    await made.start()
    log.put(1, ['a'])
    const version = groups.version('billing')
    await clock.advance(6 * 3_600_000 + 1_000)
    assert.deepEqual([runs, committed(), service.count('commitOffset')], [1, [1], 1])
    assert.deepEqual([groups.version('billing'), made.count('expired')], [version, 0])
    assert.ok(made.count('handler_slow') > 70)
    await made.stop()
  })

  test('what is pulled ahead waits as long as it takes, and is handled once', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1, settings: { consumerBatchSize: 1 } })
    const { seen, handler } = recorder()
    const { start, stop } = consumer(async (messages, { signal }) => {
      handler(messages)
      await clock.sleep(1_000, signal)
    })
    await start()
    log.put(1, bodies(500))
    await clock.advance(501_000)
    assert.deepEqual([seen, committed()], [upTo(1, 500), [500]])
    await stop()
  })

  test('bodies are texts like any other: one that a handler cannot parse is a failure of its call and of nothing else', async () => {
    const strange = ['{ac', "what's up?", '', 'null', '\ud800', '['.repeat(250_000), '{"__proto__":{"x":1}}', '{"a":1}']
    const { clock, consumer, log, committed } = setUp({
      queues: 1,
      settings: { consumerBatchSize: 1, retryCount: 1 },
      hasFailTopics: true,
    })
    const seen: string[] = []
    const { start, stop, count } = consumer(messages => {
      for (const { body } of messages) {
        seen.push(body)
        JSON.parse(body)
      }
    })
    await start()
    log.put(1, strange)
    await clock.advance(10_000)
    assert.deepEqual(seen, strange)
    assert.deepEqual(
      log.stored('billing_orders_fail').map(({ message }) => message.body),
      ['{ac', "what's up?", '', '\ud800', strange[5]],
    )
    assert.deepEqual([committed(), count('handler_failed'), ({} as { x?: number }).x], [[8], 5, undefined])
    await stop()
  })

  test('that never end lose their slot at the time-out; the others are handled, and what they end with at last is nothing', async () => {
    for (const hasFailTopics of [false, true]) {
      const settings = { timeout: 5, threadSize: 2, consumerBatchSize: 1, retryCount: 1 }
      const { clock, consumer, log, committed, service } = setUp({ queues: 1, settings, hasFailTopics })
      const { seen, handler } = recorder()
      const ends: (() => void)[] = []
      const made = consumer(
        messages => {
          if (messages[0]?.offset !== 4) return handler(messages)
          return new Promise<void>(resolve => ends.push(resolve))
        },
        { stopTimeoutMs: 0 },
      )
      await made.start()
      service.onRequest = operation =>
        operation === 'publishAndUpdateResultFailMsg' ? { kind: 'unreachable' } : undefined
      log.put(1, bodies(10))
      await clock.advance(7_000)
      assert.deepEqual(seen, [...upTo(1, 3), ...upTo(1, 10, 5)])
      ends[0]?.()
      await clock.advance(2_000)
      assert.deepEqual([committed(), made.count('handler_failed')], [[3], 1])
      service.onRequest = () => undefined
      await clock.advance(20_000)
      assert.deepEqual([committed(), ends.length > 1], hasFailTopics ? [[10], false] : [[3], true])
      const stopped = made.stop()
      await clock.advance(1)
      await stopped
    }
  })

  test('get every message whole, also where it has expired between its pull and its call', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1, settings: { consumerBatchSize: 1 } })
    const seen: string[] = []
    const { start, stop, count } = consumer(
      async (messages, { signal }) => {
        seen.push(...messages.map(({ body }) => body))
        await clock.sleep(1_000, signal)
      },
      { maxBufferedMessages: 10, maxPullBytes: 1 },
    )
    await start()
    for (let batch = 0; batch < 5; batch++) log.put(1, ['a', 'b', 'c', 'd'])
    await clock.advance(1_500)
    log.trim(1, 16)
    await clock.advance(60_000)
    assert.equal(count('skipped'), 1)
    assert.ok(seen.length >= 10 && seen.length < 20, `${seen.length} handled`)
    assert.ok(seen.every(body => 'abcd'.includes(body)))
    assert.deepEqual(committed(), [20])
    await stop()
  })

  test('as many fail at once as may run, by a throw or by what they return, and the next ones are handled', async () => {
    for (const hasFailTopics of [false, true]) {
      const settings = { threadSize: 5, consumerBatchSize: 1, retryDelay: 43_200 }
      const { clock, consumer, log, committed } = setUp({ queues: 1, settings, hasFailTopics })
      const failures = new Map<number, number>()
      const { start, stop } = consumer(([message]) => {
        const { offset } = message ?? assert.fail()
        const times = failures.get(offset) ?? 0
        if (offset > 5 || times === 2) return
        failures.set(offset, times + 1)
        if (offset % 2) return [offset]
        throw undefined
      })
      await start()
      log.put(1, bodies(5))
      await clock.advance(10_000)
      log.put(1, bodies(20))
      await clock.advance(10_000)
      assert.deepEqual(committed(), [25])
      await stop()
    }
  })

  test('never more calls than threadSize, and never more in hand than the buffer takes, through whatever happens', async () => {
    const { clock, consumer, log, groups, service } = setUp({
      queues: 2,
      settings: { threadSize: 3, consumerBatchSize: 2 },
    })
    const random = seededRandom(7)
    const running = new Map<string, number>()
    let most = 0
    let buffered = 0
    const join = (name: string) =>
      consumer(
        async (_, { queueId, signal }) => {
          const slot = `${name} ${queueId}`
          running.set(slot, (running.get(slot) ?? 0) + 1)
          most = Math.max(most, running.get(slot) ?? 0)
          await clock.sleep(random() * 500, signal)
          running.set(slot, (running.get(slot) ?? 0) - 1)
          if (random() < 0.2) throw new Error('no')
        },
        { maxBufferedMessages: 50, maxPullBytes: 1 },
      )
    const first = join('first')
    await first.start()
    for (let batch = 0; batch < 200; batch++) for (const queueId of [1, 2]) log.put(queueId, bodies(10))
    for (let step = 0; step < 40; step++) {
      const second = join(`second ${step}`)
      if (random() < 0.5) await second.start()
      if (random() < 0.3) first.pause()
      if (random() < 0.2) groups.changeSettings('billing', { stopFlag: random() < 0.5 ? 1 : 0 })
      service.onRequest = () => (random() < 0.1 ? { kind: 'lose_answer' } : undefined)
      await clock.advance(random() * 5_000)
      for (const status of first.status().queues) buffered = Math.max(buffered, status.buffered)
      first.resume()
      service.onRequest = () => undefined
      const stopped = second.stop()
      await clock.advance(15_000)
      await stopped
    }
    assert.equal(most, 3)
    assert.ok(buffered > 0 && buffered < 60, `${buffered} buffered`)
    const stopped = first.stop()
    await clock.advance(15_000)
    await stopped
  })

  test('a stop ends within its time and a little, starts no handler any more, and commits what was handled', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const random = seededRandom(seed)
      const settings = { threadSize: 4, consumerBatchSize: 3, retryDelay: 43_200 }
      const { clock, consumer, log, committed } = setUp({ queues: 1, settings, hasFailTopics: seed % 2 === 0 })
      const { seen, handler } = recorder()
      let isStopping = false
      let isLate = false
      const { start, stop } = consumer(
        async (messages, { signal }) => {
          isLate ||= isStopping
          await clock.sleep(random() * 20_000, signal)
          if (signal.aborted) return
          if (random() < 0.2) return [messages[0]?.offset ?? 0]
          handler(messages)
        },
        { stopTimeoutMs: 10_000 },
      )
      await start()
      log.put(1, bodies(1_000))
      await clock.advance(random() * 60_000)
      const startedAtMs = clock.monotonic()
      isStopping = true
      const stopped = stop().then(() => clock.monotonic() - startedAtMs)
      await clock.advance(30_000)
      const tookMs = await stopped
      assert.ok(tookMs <= 10_100, `${tookMs} ms`)
      assert.equal(isLate, false)
      const done = committed()[0] ?? 0
      const before = [...seen]
      const next = consumer(handler)
      await next.start()
      await clock.advance(60_000)
      await next.stop()
      const repeated = seen.slice(before.length).filter(at => before.includes(at))
      assert.ok(
        repeated.every(at => Number(at.split(':')[1]) > done),
        'nothing below the committed offset comes again',
      )
      assert.ok(done > 0 || startedAtMs < 20_000)
    }
  })
})
