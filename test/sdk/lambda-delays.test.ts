import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import type { Message } from '../../sdk/src/message.ts'
import { bodies, passTime, recorder, setUp } from './lambda-setup.ts'

let scene: Awaited<ReturnType<typeof setUp>>
afterEach(() => scene.service.close())

describe('messages that are not due', () => {
  test('are left to a later invocation, and their queues given up at once', async () => {
    scene = await setUp({ queues: 2, settings: { delayProcessTimeSeconds: 60 } })
    const { lambda, publish, queueIds, service, clock, committed, claimants } = scene
    for (const queueId of queueIds) await publish(bodies(2), queueId)
    const { seen, handler } = recorder()
    const { invoke, named } = lambda({ topics: { orders: handler } })
    const startedAtMs = clock.monotonic()
    const nextDueAtMs = clock.now() + 60_000
    assert.deepEqual(await invoke(600_000), { handled: 0, failed: 0, queues: 2, isDrained: true, nextDueAtMs })
    assert.ok(clock.monotonic() - startedAtMs < 1_000)
    assert.deepEqual(
      [await committed(), await claimants()],
      [
        [0, 0],
        [undefined, undefined],
      ],
    )
    assert.deepEqual(named('claimQueues').at(-1)?.request.exceptQueueIds, queueIds)
    await passTime(service, 60_000, 1_000)
    assert.deepEqual(await invoke(600_000), { handled: 4, failed: 0, queues: 2, isDrained: true })
    assert.equal(seen.length, 4)
  })

  test('are waited for where they soon will be', async () => {
    scene = await setUp({ queues: 1, settings: { delayProcessTimeSeconds: 4 } })
    const { lambda, publish, clock } = scene
    await publish(bodies(2))
    const startedAtMs = clock.monotonic()
    assert.equal((await lambda().invoke()).handled, 2)
    assert.ok(clock.monotonic() - startedAtMs >= 4_000)
  })

  test('are not waited for beyond the time that is left, nor at all where that is asked for', async () => {
    scene = await setUp({ queues: 1, settings: { delayProcessTimeSeconds: 4 } })
    const { lambda, publish, clock } = scene
    await publish(bodies(1))
    const startedAtMs = clock.monotonic()
    const report = { handled: 0, failed: 0, queues: 1, isDrained: true, nextDueAtMs: clock.now() + 4_000 }
    assert.deepEqual(await lambda().invoke(7_000), report)
    assert.deepEqual(await lambda({ maxIdleMs: 0 }).invoke(), report)
    assert.ok(clock.monotonic() - startedAtMs < 1_000)
  })

  test('keep nobody from those that are, however many queues have them', async () => {
    scene = await setUp({ queues: 8, settings: { delayProcessTimeSeconds: 60 } })
    const { lambda, publish, queueIds, service } = scene
    await publish(bodies(3), queueIds[6])
    await passTime(service, 60_000, 1_000)
    for (const queueId of queueIds) await publish(bodies(1), queueId)
    const nextDueAtMs = service.clock.now() + 60_000
    const { seen, handler } = recorder()
    const report = await lambda({ maxQueues: 1, topics: { orders: handler } }).invoke()
    assert.deepEqual(report, { handled: 3, failed: 0, queues: 8, isDrained: true, nextDueAtMs })
    assert.deepEqual(
      seen,
      [1, 2, 3].map(offset => `${queueIds[6]}:${offset}`),
    )
  })

  test('do not hold an invocation that has more of them than it may buffer', async () => {
    scene = await setUp({ queues: 1, settings: { delayProcessTimeSeconds: 60 } })
    const { lambda, publish, clock } = scene
    await publish(bodies(50))
    await publish(bodies(50))
    const startedAtMs = clock.monotonic()
    const nextDueAtMs = clock.now() + 60_000
    const { invoke } = lambda({ maxQueues: 1, maxBufferedMessages: 10 })
    assert.deepEqual(await invoke(), { handled: 0, failed: 0, queues: 1, isDrained: true, nextDueAtMs })
    assert.ok(clock.monotonic() - startedAtMs < 1_000)
  })
})

describe('a handler that fails', () => {
  test('is called again with what has failed, in the same invocation if there is time', async () => {
    scene = await setUp({ queues: 1, settings: { consumerBatchSize: 5, retryInPlace: true } })
    const { lambda, publish, committed } = scene
    await publish(bodies(5))
    const calls: number[][] = []
    const { invoke } = lambda({
      topics: {
        orders(messages: readonly Message[]) {
          calls.push(messages.map(({ offset }) => offset))
          if (calls.length === 1) return [2, 4]
          if (calls.length === 2) throw undefined
        },
      },
    })
    assert.deepEqual(await invoke(), { handled: 5, failed: 4, queues: 1, isDrained: true })
    assert.deepEqual(calls, [
      [1, 2, 3, 4, 5],
      [2, 4],
      [2, 4],
    ])
    assert.deepEqual(await committed(), [5])
  })

  test('leaves what has failed to later invocations, so often as the subscription says, and holds up nobody', async () => {
    scene = await setUp({ queues: 1, settings: { retryCount: 2, retryDelaySeconds: 60 } })
    const { lambda, publish, committed, clock } = scene
    await publish(['good', 'bad', 'better'])
    const seen: [string, number][] = []
    const { invoke } = lambda({
      topics: {
        orders(messages) {
          for (const { body, retryCount } of messages) seen.push([body, retryCount])
          return messages.filter(({ body }) => body === 'bad').map(({ offset }) => offset)
        },
      },
    })
    const nextDueAtMs = clock.now() + 60_000
    assert.deepEqual(await invoke(), { handled: 2, failed: 1, queues: 2, isDrained: true, nextDueAtMs })
    assert.deepEqual(seen.splice(0), [
      ['good', 0],
      ['bad', 0],
      ['better', 0],
    ])
    assert.deepEqual((await committed())[0], 3)
    // Not due before, and no longer after its last time.
    for (const retry of [undefined, 1, undefined, 2, undefined, undefined]) {
      if (retry !== undefined) clock.step(60_000)
      await invoke()
      assert.deepEqual(seen.splice(0), retry === undefined ? [] : [['bad', retry]])
    }
  })

  test('for ever lets the invocation end in time, and its message comes again', async () => {
    scene = await setUp({ queues: 1, settings: { retryInPlace: true, retryCount: 100 } })
    const { lambda, publish, committed, claimants } = scene
    await publish(bodies(3))
    const { invoke } = lambda({
      topics: {
        orders(messages) {
          if (messages[0]?.offset === 2) throw new Error('never')
        },
      },
    })
    const report = await invoke(12_000)
    assert.equal(report.handled, 1)
    assert.ok(report.failed > 1)
    assert.equal(report.isDrained, false)
    assert.deepEqual([await committed(), await claimants()], [[1], [undefined]])
    assert.equal((await lambda().invoke()).handled, 2)
  })
})
