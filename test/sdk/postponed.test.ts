import assert from 'node:assert/strict'
import { afterEach, describe, suite, test } from 'node:test'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { Message } from '../../sdk/src/message.ts'
import { bodies as consumerBodies, setUp as setUpConsumer } from './consumer-setup.ts'
import { bodies, passTime, setUp } from './lambda-setup.ts'

const postponed = (retryAfterMs?: number) =>
  new PmqClientError('postponed', 'It is away.', retryAfterMs === undefined ? {} : { retryAfterMs })

suite('a handler that has not begun', () => {
  test('gets its messages again in place, in order, however often, and nothing counts as a failure', async () => {
    const settings = { consumerBatchSize: 2, threadSize: 1, retryCount: 0 }
    const { clock, consumer, log, service, committed } = setUpConsumer({ queues: 1, settings, hasFailTopics: true })
    const seen: number[] = []
    let calls = 0
    const made = consumer(messages => {
      if (++calls <= 20) throw postponed()
      seen.push(...messages.map(({ offset }) => offset))
    })
    await made.start()
    log.put(1, consumerBodies(5))
    await clock.advance(600_000)
    assert.deepEqual([seen, committed()], [[1, 2, 3, 4, 5], [5]])
    const counts = [
      made.count('handler_postponed'),
      made.count('handler_failed'),
      service.count('publishAndUpdateResultFailMsg'),
    ]
    assert.deepEqual(counts, [20, 0, 0])
    await made.stop()
  })

  test('is called again after a pause that grows, and no sooner than it asks for', async () => {
    const { clock, consumer, log } = setUpConsumer({ queues: 1, settings: { consumerBatchSize: 1 } })
    const atMs: number[] = []
    const made = consumer(() => {
      atMs.push(clock.monotonic())
      if (atMs.length <= 4) throw postponed(atMs.length === 4 ? 20_000 : undefined)
    })
    await made.start()
    log.put(1, ['a'])
    await clock.advance(60_000)
    const pauses = atMs.slice(1).map((ms, index) => ms - (atMs[index] ?? 0))
    assert.equal(pauses.length, 4)
    for (const [index, leastMs] of [90, 180, 360, 20_000].entries()) {
      const pauseMs = pauses[index] ?? 0
      assert.ok(pauseMs >= leastMs && pauseMs <= leastMs * 1.2 + 50, `pause ${index} took ${pauseMs} ms`)
    }
    await made.stop()
  })

  test('keeps the count of those that have failed in place before', async () => {
    const settings = { consumerBatchSize: 1, threadSize: 1, retryInPlace: true as const, retryCount: 2 }
    const { clock, consumer, log, service } = setUpConsumer({ queues: 1, settings, hasFailTopics: true })
    let calls = 0
    const made = consumer(() => {
      if (++calls % 2 === 0) throw postponed()
      throw new Error('bad')
    })
    await made.start()
    log.put(1, ['a'])
    await clock.advance(60_000)
    assert.deepEqual([made.count('handler_failed'), made.count('handler_postponed')], [2, 1])
    assert.equal(service.count('publishAndUpdateResultFailMsg'), 1)
    await made.stop()
  })

  test('is known by name, since its error may be of another copy of the package', async () => {
    const { clock, consumer, log, committed } = setUpConsumer({ queues: 1, settings: { consumerBatchSize: 1 } })
    let calls = 0
    const made = consumer(() => {
      if (++calls === 1) throw Object.assign(new Error('away'), { name: 'PmqClientError', code: 'postponed' })
    })
    await made.start()
    log.put(1, ['a'])
    await clock.advance(1_000)
    assert.deepEqual([made.count('handler_postponed'), made.count('handler_failed'), committed()], [1, 0, [1]])
    await made.stop()
  })

  test('does not keep a stop waiting, and nothing is committed past its messages', async () => {
    const { clock, consumer, log, committed } = setUpConsumer({
      queues: 1,
      settings: { consumerBatchSize: 1, threadSize: 3 },
    })
    const results: [string, readonly number[]][] = []
    const made = consumer(
      messages => {
        if (messages[0]?.offset === 2) throw postponed()
      },
      { listeners: { postHandle: (_, __, { outcome, failed }) => void results.push([outcome, failed]) } },
    )
    await made.start()
    log.put(1, consumerBodies(3))
    await clock.advance(100)
    const atMs = clock.monotonic()
    const stopped = made.stop()
    await clock.advanceUntil(() => committed()[0] === 1)
    await stopped
    assert.ok(clock.monotonic() - atMs < 1_000)
    assert.ok(results.some(([outcome, failed]) => outcome === 'postponed' && failed.length === 0))
    assert.ok(results.every(([outcome]) => outcome !== 'failed'))
  })
})

describe('an invocation', () => {
  let scene: Awaited<ReturnType<typeof setUp>>
  afterEach(() => scene.service.close())

  test('that is told to end begins no more calls, lets running ones end, commits and gives its queues up', async () => {
    scene = await setUp({ queues: 2, settings: { threadSize: 1 } })
    const { clock, lambda, publish, queueIds, service, committed, claimants } = scene
    for (const queueId of queueIds) await publish(bodies(5), queueId)
    const ending = new AbortController()
    const seen: Message[] = []
    const { handler } = lambda({
      topics: {
        async orders(messages) {
          seen.push(...messages)
          if (seen.length === 4) ending.abort()
          await clock.sleep(500)
        },
      },
    })
    const atMs = clock.monotonic()
    const context = { getRemainingTimeInMillis: () => 600_000, signal: ending.signal }
    const report = await service.pass(handler({}, context))
    assert.deepEqual(report, { handled: 4, failed: 0, queues: 2, isDrained: false })
    assert.deepEqual(
      [await committed(), await claimants()],
      [
        [2, 2],
        [undefined, undefined],
      ],
    )
    assert.ok(clock.monotonic() - atMs < 3_000)
    const again = await service.pass(handler({}, { getRemainingTimeInMillis: () => 600_000, signal: ending.signal }))
    assert.deepEqual(again, { handled: 0, failed: 0, queues: 0, isDrained: false })
  })

  test('counts a call that has not begun neither as handled nor as failed, and leaves its messages to a later one', async () => {
    scene = await setUp({ queues: 1, settings: { consumerBatchSize: 5, retryCount: 1 } })
    const { lambda, publish, service, committed, claimants } = scene
    await publish(bodies(5))
    const ending = new AbortController()
    const { handler } = lambda({
      topics: {
        orders() {
          ending.abort()
          throw postponed()
        },
      },
    })
    const report = await service.pass(handler({}, { getRemainingTimeInMillis: () => 60_000, signal: ending.signal }))
    assert.deepEqual(report, { handled: 0, failed: 0, queues: 1, isDrained: false })
    assert.deepEqual([await committed(), await claimants()], [[0], [undefined]])
    assert.equal((await lambda().invoke()).handled, 5)
  })

  test('gives a handler no more text at once than was asked for, in every way of taking messages', async () => {
    const ways = [{}, { ordering: 'key' as const }, { commit: 'manual' as const }]
    for (const way of ways) {
      scene = await setUp({ queues: 1, settings: { consumerBatchSize: 100 } })
      const { lambda, publish, service } = scene
      await publish(Array.from({ length: 20 }, () => 'x'.repeat(900)))
      const sizes: number[] = []
      const { invoke } = lambda({
        maxCallBytes: 3_000,
        ...way,
        topics: {
          orders: (messages, { commit }) => {
            sizes.push(messages.length)
            if (way.commit) void commit(messages.at(-1)?.offset ?? 0)
          },
        },
      })
      await invoke()
      assert.deepEqual(sizes, [3, 3, 3, 3, 3, 3, 2])
      if (way !== ways.at(-1)) await service.close()
    }
    await passTime(scene.service, 0)
  })
})
