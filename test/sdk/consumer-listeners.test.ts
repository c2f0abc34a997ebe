import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CallResult } from '../../sdk/src/consumer-listeners.ts'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'

suite('listeners of a consumer', () => {
  test('what the filter says no to is passed over and counts as consumed; everything else is handled', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const answers = [false, true, undefined, 0, false, null] as boolean[]
    const { start, stop } = consumer(handler, {
      listeners: { filter: ({ offset }) => answers[offset - 1] as boolean },
    })
    await start()
    log.put(1, bodies(6))
    await clock.advance(1_000)
    assert.deepEqual([seen, committed()], [['1:2', '1:3', '1:4', '1:6'], [6]])
    await stop()
  })

  test('a message whose filter throws is handled, and that is told', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const error = new Error('filter')
    const { start, stop, events } = consumer(handler, {
      listeners: {
        filter: ({ offset }) => {
          if (offset === 2) throw error
          return true
        },
      },
    })
    await start()
    log.put(1, bodies(3))
    await clock.advance(1_000)
    assert.deepEqual([seen, committed()], [upTo(1, 3), [3]])
    assert.deepEqual(
      events.filter(({ type }) => type === 'listener_failed'),
      [{ type: 'listener_failed', groupName: 'billing', topicName: 'orders', queueId: 1, listener: 'filter', error }],
    )
    await stop()
  })

  test('a filter that returns a promise, whatever becomes of it, is one that throws', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const { start, stop, events } = consumer(handler, {
      listeners: {
        filter: ({ offset }) => (offset === 2 ? Promise.reject(new Error('no')) : Promise.resolve(false)) as never,
      },
    })
    await start()
    log.put(1, bodies(3))
    await clock.advance(1_000)
    assert.deepEqual([seen, committed()], [upTo(1, 3), [3]])
    const codes = events.map(event => event.type === 'listener_failed' && (event.error as { code?: string }).code)
    assert.deepEqual(codes.filter(Boolean), ['invalid_result', 'invalid_result', 'invalid_result'])
    await stop()
  })

  test('a no, a throw or a rejection before a call makes the queue wait, without a hot loop and without loss', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const answers: (() => boolean | Promise<boolean>)[] = [
      () => false,
      () => assert.fail('preHandle'),
      () => Promise.reject(null),
      async () => false,
    ]
    let asked = 0
    let isHeld = true
    const { start, stop, count, status } = consumer(handler, {
      listeners: { preHandle: () => !isHeld || (answers[asked++ % 4]?.() ?? true) },
    })
    await start()
    log.put(1, bodies(25))
    await clock.advance(600_000)
    assert.ok(asked > 100 && asked < 150, `asked ${asked} times`)
    assert.deepEqual([seen, committed(), status().queues[0]?.isHeld], [[], [0], true])
    assert.ok(count('listener_failed') >= asked / 2 - 1)
    isHeld = false
    await clock.advance(10_000)
    assert.deepEqual([seen, committed(), status().queues[0]?.isHeld], [upTo(1, 25), [25], false])
    await stop()
  })

  test('a listener that never answers before a call holds its queue, and that is told again and again', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    let answer: ((isYes: boolean) => void) | undefined
    const { start, stop, events, status } = consumer(handler, {
      warnTimeoutMs: 60_000,
      listeners: { preHandle: () => new Promise(resolve => (answer = resolve)) },
    })
    await start()
    log.put(1, ['a'])
    await clock.advance(150_000)
    assert.deepEqual([seen, status().queues[0]?.isHeld], [[], true])
    const slow = events.map(event => event.type === 'handler_slow' && [event.offsets, event.runningMs])
    assert.deepEqual(slow.filter(Boolean), [
      [[1], 60_000],
      [[1], 120_000],
    ])
    answer?.(false)
    await clock.advance(150_000)
    answer?.(true)
    await clock.advance(300_000)
    assert.deepEqual([seen, committed(), status().queues[0]?.isHeld], [['1:1'], [1], false])
    assert.equal(events.filter(({ type }) => type === 'handler_slow').length, 4)
    await stop()
  })

  test('what is told after a call and throws changes nothing', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1, settings: { consumerBatchSize: 2 } })
    const { seen, handler } = recorder()
    const results: [number[], CallResult['outcome'], readonly number[]][] = []
    let calls = 0
    const { start, stop, count } = consumer(messages => (calls++ === 0 ? [2] : handler(messages)), {
      listeners: {
        postHandle: async (messages, { queueId }, { outcome, failed }) => {
          assert.equal(queueId, 1)
          results.push([messages.map(({ offset }) => offset), outcome, failed])
          throw new Error('postHandle')
        },
      },
    })
    await start()
    log.put(1, bodies(3))
    await clock.advance(2_000)
    assert.deepEqual(results, [
      [[1, 2], 'failed', [2]],
      [[2], 'done', []],
      [[3], 'done', []],
    ])
    assert.deepEqual([seen, committed(), count('listener_failed')], [['1:2', '1:3'], [3], 3])
    await stop()
  })

  test('a filter over a long backlog lets other work have its turns', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1 })
    let filtered = 0
    let turns = 0
    const { start, stop } = consumer(() => assert.fail(), {
      listeners: {
        filter: () => {
          filtered++
          return false
        },
      },
    })
    await start()
    const turn = () => {
      if (filtered > 0 && filtered < 5_000) turns++
      if (filtered < 5_000) setImmediate(turn)
    }
    setImmediate(turn)
    log.put(1, bodies(5_000))
    await clock.advance(2_000)
    assert.deepEqual(committed(), [5_000])
    assert.ok(turns >= 8, `${turns} turns`)
    await stop()
  })
})
