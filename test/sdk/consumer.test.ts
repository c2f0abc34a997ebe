import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { Message } from '../../sdk/src/message.ts'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'
import { settle } from './manual-clock.ts'

suite('consuming', () => {
  test('hands each message to the handler of its topic, with all that it has', async () => {
    const { clock, consumer, log } = setUp({ queues: 1 })
    const seen: Message[] = []
    const { client, start, stop } = consumer(messages => void seen.push(...messages))
    await start()
    const message = { body: '€', key: 'k', tag: 't', bizId: 'b', traceId: 'x', head: { name: 'value' } }
    await client.publish('orders', message)
    await clock.advance(1_000)
    assert.deepEqual(seen, [
      {
        ...message,
        topicName: 'orders',
        queueId: 1,
        offset: 1,
        retryCount: 0,
        publishedAtMs: clock.now() - 1_000,
        sendIp: '',
      },
    ])
    assert.equal(log.stored('orders').length, 1)
    await stop()
  })

  test('each queue is handed out in offset order, and committed', async () => {
    const { clock, consumer, log, committed } = setUp()
    const { seen, handler } = recorder()
    const { start, stop } = consumer(handler)
    await start()
    for (let round = 0; round < 10; round++) {
      log.put(1, bodies(30))
      log.put(2, bodies(20))
      await clock.advance(100)
    }
    await clock.advance(1_000)
    assert.deepEqual(
      seen.filter(at => at.startsWith('1:')),
      upTo(1, 300),
    )
    assert.deepEqual(
      seen.filter(at => at.startsWith('2:')),
      upTo(2, 200),
    )
    assert.deepEqual(committed(), [300, 200])
    await stop()
  })

  test('a message that is published while the service holds a pull is handled without delay', async () => {
    const { clock, consumer, log } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const { start, stop } = consumer(handler)
    await start()
    await clock.advance(7_000)
    log.put(1, ['a'])
    await settle()
    assert.deepEqual(seen, ['1:1'])
    await stop()
  })

  test('nothing is committed past a message whose handler fails, however often, and nothing is dropped', async () => {
    const { clock, consumer, log, committed, ...made } = setUp({
      queues: 1,
      settings: { threadSize: 3, consumerBatchSize: 1 },
    })
    let failures = 0
    const { seen, handler } = recorder()
    const failing = consumer(messages => {
      if (messages[0]?.offset === 5 && failures++ < 20) throw new Error('no')
      return handler(messages)
    })
    await failing.start()
    log.put(1, bodies(10))
    await clock.advance(60_000)
    assert.deepEqual(committed(), [4])
    assert.equal(seen.includes('1:5'), false)
    assert.equal(seen.length, 9, 'the other slots go on')
    await clock.advance(600_000)
    assert.deepEqual(committed(), [10])
    assert.deepEqual(seen.toSorted(), upTo(1, 10).toSorted())
    assert.equal(failing.count('handler_failed'), 20)
    assert.equal(made.service.mostInFlight.get('pullData'), 1)
    await failing.stop()
  })

  test('a commit of which the request or the answer is lost is told and made again, and nothing is handled twice', async () => {
    for (const kind of ['lose_request', 'lose_answer', 'hang'] as const) {
      const { clock, consumer, log, service, committed } = setUp({ queues: 1 })
      const { seen, handler } = recorder()
      const made = consumer(handler)
      await made.start()
      let lost = 0
      service.onRequest = operation => (operation === 'commitOffset' && lost++ < 3 ? { kind } : undefined)
      log.put(1, bodies(5))
      await clock.advance(60_000)
      log.put(1, bodies(5))
      await clock.advance(60_000)
      assert.deepEqual([seen, committed()], [upTo(1, 10), [10]])
      const told = made.events.filter(event => event.type === 'request_failed' && event.operation === 'commitOffset')
      assert.equal(told.length, 3)
      await made.stop()
    }
  })

  for (const syncCommit of [false, true]) {
    const how = syncCommit ? 'with each call' : 'at intervals'
    test(`what is not done is not committed ${how}, however long it takes`, async () => {
      const { clock, consumer, log, service, committed } = setUp({ queues: 2, settings: { threadSize: 2 } })
      const { start, stop } = consumer(
        async ([message], { queueId, signal }) => {
          // The second call of queue 2 ends, the first one does not; in queue 1 the first one ends.
          if (queueId === 1 ? message?.offset !== 1 : message?.offset !== 11) await clock.sleep(36_000_000, signal)
        },
        { syncCommit, stopTimeoutMs: 0 },
      )
      await start()
      for (const queueId of [1, 2]) log.put(queueId, bodies(100))
      await clock.advance(3_600_000)
      assert.deepEqual(committed(), [10, 0])
      assert.equal(service.count('commitOffset'), 1)
      const stopped = stop()
      await clock.advance(1_000)
      await stopped
      assert.deepEqual(committed(), [10, 0])
    })
  }

  test('what is done behind a message that keeps failing is bounded', async () => {
    const { clock, consumer, log } = setUp({ queues: 1, settings: { threadSize: 2, consumerBatchSize: 1 } })
    const { seen, handler } = recorder()
    const options = { maxBufferedMessages: 50 }
    const { start, stop, status } = consumer(messages => {
      if (messages[0]?.offset === 1) throw new Error('no')
      return handler(messages)
    }, options)
    await start()
    for (let batch = 0; batch < 100; batch++) log.put(1, bodies(10))
    await clock.advance(60_000)
    assert.equal(seen.length, 49)
    assert.ok((status().queues[0]?.buffered ?? 0) < 1_000)
    await stop()
  })

  test('a slow handler stops the pulls', async () => {
    const { clock, consumer, log, service } = setUp({ queues: 1 })
    const { start, stop, status } = consumer(() => new Promise(() => undefined), {
      maxBufferedMessages: 100,
      maxPullBytes: 100,
      stopTimeoutMs: 0,
    })
    await start()
    for (let batch = 0; batch < 100; batch++) log.put(1, ['x'.repeat(50), 'x'.repeat(50)])
    await clock.advance(60_000)
    const pulls = service.count('pullData')
    assert.ok((status().queues[0]?.buffered ?? 0) <= 102)
    await clock.advance(600_000)
    assert.equal(service.count('pullData'), pulls)
    const stopped = stop()
    await clock.advance(1)
    await stopped
  })

  test('never more than threadSize calls of a queue run at once', async () => {
    const { clock, consumer, log } = setUp({ queues: 2, settings: { threadSize: 3, consumerBatchSize: 2 } })
    const running = new Map<number, number>()
    let most = 0
    let largest = 0
    const { start, stop } = consumer(async (messages, { queueId, signal }) => {
      running.set(queueId, (running.get(queueId) ?? 0) + 1)
      most = Math.max(most, running.get(queueId) ?? 0)
      largest = Math.max(largest, messages.length)
      await clock.sleep(10, signal)
      running.set(queueId, (running.get(queueId) ?? 0) - 1)
      if (messages[0]?.offset === 7) throw new Error('no')
    })
    await start()
    log.put(1, bodies(100))
    log.put(2, bodies(100))
    await clock.advance(2_000)
    assert.deepEqual([most, largest], [3, 2])
    await stop()
  })

  test('messages past retention are told as skipped', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const { start, stop, events } = consumer(handler)
    for (let batch = 0; batch < 3; batch++) log.put(1, bodies(5))
    log.trim(1, 10)
    await start()
    await clock.advance(1_000)
    assert.deepEqual(seen, upTo(1, 15, 11))
    const skipped = events.find(({ type }) => type === 'skipped')
    assert.ok(skipped?.type === 'skipped')
    assert.deepEqual([skipped.firstOffset, skipped.count], [1, 10])
    assert.deepEqual(committed(), [15])
    await stop()
  })

  test('a listener that throws or rejects disturbs nothing', async () => {
    const { clock, consumer, log, service, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    for (const onEvent of [
      () => {
        throw new Error('listener')
      },
      async () => {
        throw new Error('listener')
      },
    ]) {
      const { start, stop } = consumer(handler, { onEvent })
      service.onRequest = () => ({ kind: 'unreachable' })
      const started = start()
      await clock.advance(5_000)
      service.onRequest = () => undefined
      await clock.advance(20_000)
      await started
      log.put(1, bodies(3))
      await clock.advance(10_000)
      await stop()
    }
    assert.deepEqual(seen, upTo(1, 6))
    assert.deepEqual(committed(), [6])
  })

  test('an idle consumer costs few requests', async () => {
    const { clock, consumer, service } = setUp()
    const { start, stop } = consumer(() => undefined)
    await start()
    await clock.advance(60_000)
    service.requests.length = 0
    await clock.advance(3_600_000)
    assert.equal(service.count('commitOffset'), 0)
    // It looks every five minutes whether it has missed something.
    assert.equal(service.count('getConsumerGroupPolling'), 12)
    assert.equal(service.count('heartbeat'), 360)
    assert.ok(service.count('pullData') <= 2 * 720, `${service.count('pullData')} pulls`)
    await stop()
  })

  test('two consumers of one process have two names', () => {
    const { consumer } = setUp()
    const names = [consumer(() => undefined), consumer(() => undefined)].map(made => made.status().consumerName)
    assert.notEqual(names[0], names[1])
    for (const name of names) assert.match(name ?? '', /^[\d.]+\|\d+\|\d{1,4}-[0-9a-z]{6}$/)
  })
})

suite('settings of the subscription', () => {
  test('apply at once, without a restart', async () => {
    const { clock, consumer, log, groups } = setUp({ queues: 1, settings: { threadSize: 1, consumerBatchSize: 1 } })
    const sizes: number[] = []
    const made = consumer(async (messages, { signal }) => {
      sizes.push(messages.length)
      await clock.sleep(100, signal)
    })
    await made.start()
    for (let batch = 0; batch < 5; batch++) log.put(1, bodies(1_000))
    await clock.advance(1_000)
    assert.deepEqual(new Set(sizes), new Set([1]))
    groups.changeSettings('billing', { threadSize: 4, consumerBatchSize: 5 })
    await clock.advance(10_000)
    assert.equal(sizes.at(-1), 5)
    assert.equal(made.status().queues[0]?.running, 4)
    assert.equal(made.count('assigned'), 1)
    const stopped = made.stop()
    await clock.advance(100)
    await stopped
  })

  test('the stop flag pauses a queue, and its end resumes it where it was', async () => {
    const { clock, consumer, log, groups, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const { start, stop, status } = consumer(handler)
    await start()
    log.put(1, bodies(10))
    await clock.advance(10_000)
    groups.changeSettings('billing', { stopFlag: 1 })
    await clock.advance(15_000)
    assert.equal(status().queues[0]?.state, 'paused')
    log.put(1, bodies(10))
    await clock.advance(60_000)
    assert.equal(seen.length, 10)
    groups.changeSettings('billing', { stopFlag: 0 })
    await clock.advance(15_000)
    assert.deepEqual(seen, upTo(1, 20))
    assert.deepEqual(committed(), [20])
    await stop()
  })

  test('an offset that is set by hand drops the buffer and begins there, back and forth', async () => {
    const { clock, consumer, log, groups, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const made = consumer(handler)
    await made.start()
    log.put(1, bodies(10))
    await clock.advance(10_000)
    groups.reset('billing', 1, 4)
    await clock.advance(15_000)
    assert.deepEqual(seen, [...upTo(1, 10), ...upTo(1, 10, 5)])
    groups.changeSettings('billing', { stopFlag: 1 })
    await clock.advance(15_000)
    log.put(1, bodies(10))
    groups.reset('billing', 1, 18)
    await clock.advance(15_000)
    groups.changeSettings('billing', { stopFlag: 0 })
    await clock.advance(15_000)
    assert.deepEqual(seen.slice(16), ['1:19', '1:20'])
    assert.deepEqual(committed(), [20])
    assert.equal(made.count('reset'), 2)
    await made.stop()
  })

  test('a reset aborts the calls that run, and waits for them before it begins anew', async () => {
    const { clock, consumer, log, groups, committed } = setUp({ queues: 1 })
    const log2: string[] = []
    const { start, stop } = consumer(async ([message], { signal }) => {
      log2.push(`begin ${message?.offset}`)
      await clock.sleep(20_000, signal)
      log2.push(signal.aborted ? 'aborted' : 'done')
    })
    await start()
    log.put(1, bodies(5))
    await clock.advance(1_000)
    groups.reset('billing', 1, 2)
    await clock.advance(15_000)
    assert.deepEqual(log2, ['begin 1', 'aborted', 'begin 3'])
    assert.deepEqual(committed(), [2])
    const stopped = stop()
    await clock.advance(10_000)
    await stopped
  })
})

suite('starting', () => {
  test('a service that is away is waited for', async () => {
    const { clock, consumer, service, log } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    service.onRequest = () => ({ kind: 'unreachable' })
    const made = consumer(handler)
    const started = made.start()
    await clock.advance(600_000)
    assert.equal(made.status().state, 'starting')
    assert.ok(made.count('request_failed') > 50)
    service.onRequest = () => undefined
    await clock.advance(10_000)
    await started
    log.put(1, ['a'])
    await clock.advance(1_000)
    assert.deepEqual(seen, ['1:1'])
    await made.stop()
  })

  test('a group that does not exist rejects with the words of the service, and may be started later', async () => {
    const { clock, consumer, groups } = setUp()
    const made = consumer(() => undefined, { groupName: 'nobody' })
    await assert.rejects(made.start(), (error: unknown) => {
      assert.ok(error instanceof PmqClientError)
      assert.equal(error.code, 'refused')
      assert.match(error.message, /\{nobody\}不存在/)
      return true
    })
    assert.equal(made.status().state, 'stopped')
    assert.equal(groups.consumers.size, 0, 'what was registered is taken back')
    groups.createGroup('nobody', ['orders'])
    await made.start()
    assert.equal(made.status().state, 'running')
    await made.stop()
    assert.equal(clock.sleeping, 0)
  })

  test('start, stop, start, start leaves one that pulls and handles each message once', async () => {
    const { clock, consumer, log, service } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const { start, stop } = consumer(handler)
    const all = [start(), stop(), start(), start()]
    await clock.advance(5_000)
    await Promise.all(all)
    log.put(1, bodies(50))
    await clock.advance(5_000)
    assert.deepEqual(seen, upTo(1, 50))
    assert.equal(service.mostInFlight.get('pullData'), 1)
    await stop()
    await start()
    log.put(1, bodies(10))
    await clock.advance(5_000)
    assert.deepEqual(seen, upTo(1, 60))
    await stop()
  })

  test('a stop during the start ends it, whatever it waits for', async () => {
    for (const kind of ['unreachable', 'hang'] as const) {
      const { clock, consumer, service } = setUp()
      service.onRequest = () => ({ kind })
      const made = consumer(() => undefined)
      const started = made.start()
      await clock.advance(100)
      service.onRequest = () => undefined
      await Promise.all([made.stop(), started])
      assert.equal(made.status().state, 'stopped')
      assert.equal(clock.sleeping, 0)
    }
  })
})

suite('stopping', () => {
  test('lets calls end, commits what they did, and leaves, in this order', async () => {
    const { clock, consumer, log, groups, service } = setUp({ queues: 1 })
    const made = consumer(async (_, { signal }) => clock.sleep(3_000, signal))
    await made.start()
    log.put(1, bodies(30))
    await clock.advance(1_000)
    service.requests.length = 0
    const stopped = made.stop()
    await clock.advance(2_000)
    await stopped
    assert.deepEqual(groups.history.slice(-4), [
      'release 1 by 1 at 10',
      'give 1 to 1 at 10',
      'leave 1',
      'give 1 to 0 at 10',
    ])
    assert.deepEqual(
      service.requests.map(({ operation, request }) => [operation, request.flag]),
      [
        ['commitOffset', 1],
        ['deRegister', undefined],
      ],
    )
    assert.equal(clock.sleeping, 0)
  })

  test('commits what ended in the same moment', async () => {
    for (const syncCommit of [false, true]) {
      const { clock, consumer, log, committed } = setUp({ queues: 1 })
      let stopped: Promise<void> | undefined
      const made = consumer(
        async (_, { signal }) => {
          await clock.sleep(100, signal)
          queueMicrotask(() => {
            stopped = made.stop()
          })
        },
        { syncCommit },
      )
      await made.start()
      log.put(1, bodies(10))
      await clock.advance(100)
      await stopped
      assert.deepEqual([made.status().state, committed()], ['stopped', [10]])
    }
  })

  test('calls that do not end in stopTimeoutMs are aborted, and just their messages are redelivered', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1, settings: { threadSize: 3, consumerBatchSize: 1 } })
    let aborted = 0
    const slow = consumer(
      async ([message], { signal }) => {
        if (message?.offset === 2) return
        await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
        aborted++
      },
      { stopTimeoutMs: 1_000 },
    )
    await slow.start()
    log.put(1, bodies(3))
    await clock.advance(1_000)
    const stopped = slow.stop()
    await clock.advance(1_000)
    await stopped
    assert.equal(aborted, 2)
    assert.deepEqual(committed(), [0])
    const { seen, handler } = recorder()
    const next = consumer(handler)
    await next.start()
    await clock.advance(1_000)
    assert.deepEqual(seen, upTo(1, 3))
    await next.stop()
  })

  for (const heatbeatTime of [0, -1, Number.NaN, 'soon', undefined]) {
    test(`heartbeats keep their pace where the service asks for one every ${heatbeatTime} seconds`, async () => {
      const { clock, consumer, service } = setUp({ queues: 1 })
      const answer = { suc: true, deleted: 0, bakUrl: '', heatbeatTime }
      service.onRequest = operation => (operation === 'heartbeat' ? { kind: 'answer', answer } : undefined)
      const made = consumer(() => {})
      await made.start()
      await clock.advance(61_000)
      assert.equal(service.count('heartbeat'), 7)
      await made.stop()
    })
  }

  test('heartbeats go on while calls end', async () => {
    const { clock, consumer, log, service } = setUp({ queues: 1 })
    const made = consumer(async (_, { signal }) => clock.sleep(60_000, signal), { stopTimeoutMs: 120_000 })
    await made.start()
    log.put(1, ['a'])
    await clock.advance(1_000)
    service.requests.length = 0
    const stopped = made.stop()
    await clock.advance(59_000)
    await stopped
    assert.equal(service.count('heartbeat'), 5)
    assert.equal(service.count('pullData'), 0)
    assert.equal(service.groups.committed('billing', 1), 1)
  })

  test('a call that fails during the stop is not repeated and not committed', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1 })
    let calls = 0
    const made = consumer(async () => {
      calls++
      await clock.sleep(500)
      throw new Error('no')
    })
    await made.start()
    log.put(1, ['a'])
    await clock.advance(100)
    const stopped = made.stop()
    await clock.advance(400)
    await stopped
    assert.deepEqual([calls, committed()], [1, [0]])
    const failed = made.events.findLast(({ type }) => type === 'handler_failed')
    assert.ok(failed && !('retryInMs' in failed))
  })

  test('ends at any moment, called twice and at once, and leaves nothing behind', async () => {
    for (const momentMs of [0, 1, 10, 30, 60, 100, 499, 500, 501, 5_000, 10_000]) {
      const { clock, consumer, log } = setUp()
      const { start, stop } = consumer(async (_, { signal }) => clock.sleep(7, signal))
      void start()
      log.put(1, bodies(100))
      await clock.advance(momentMs)
      const stops = Promise.all([stop(), stop()])
      await clock.advance(100)
      await stops
      await stop()
      assert.equal(clock.sleeping, 0, `at ${momentMs} ms`)
    }
  })

  test('takes no longer than its time-outs when the service is away', async () => {
    const { clock, consumer, log, service } = setUp({ queues: 1 })
    const made = consumer(() => new Promise(() => undefined), { stopTimeoutMs: 2_000 })
    await made.start()
    log.put(1, ['a'])
    await clock.advance(1_000)
    service.onRequest = () => ({ kind: 'hang' })
    let isStopped = false
    void made.stop().then(() => {
      isStopped = true
    })
    await clock.advance(2_000 + 5_000 + 10_000 + 2 * 3_000 + 200)
    assert.equal(isStopped, true)
    assert.equal(clock.sleeping, 0)
  })

  test('is stopped with its client also where that is closed in the same turn', async () => {
    const { clock, service, consumer } = setUp()
    const made = consumer(() => undefined)
    const started = made.start()
    await made.client.close()
    await started
    await clock.advance(60_000)
    assert.deepEqual([made.status().state, service.requests.length], ['stopped', 0])
  })

  test('cannot be started any more once its client is closed', async () => {
    const { consumer } = setUp()
    const made = consumer(() => undefined)
    await made.client.close()
    await assert.rejects(made.start(), { code: 'closed' })
    assert.equal(made.status().state, 'stopped')
  })

  test('await using stops it, and closing the client stops all of its consumers', async () => {
    const { clock, consumer, groups } = setUp()
    {
      const { client, ...made } = consumer(() => undefined)
      await using _ = made
      await made.start()
      assert.equal(groups.consumers.size, 1)
      void client
    }
    assert.equal(groups.consumers.size, 0)
    const { client, start } = consumer(() => undefined)
    await start()
    await Promise.all([client.close(), client.close()])
    assert.deepEqual([groups.consumers.size, clock.sleeping], [0, 0])
    assert.throws(() => client.consumer({ groupName: 'billing', topics: { orders: () => undefined } }), {
      code: 'closed',
    })
  })

  test('a handler may call stop, if it does not await it', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1 })
    const made = consumer(() => {
      void made.stop()
    })
    await made.start()
    log.put(1, bodies(25))
    await clock.advance(1_000)
    assert.equal(made.status().state, 'stopped')
    assert.deepEqual(committed(), [10])
  })
})
