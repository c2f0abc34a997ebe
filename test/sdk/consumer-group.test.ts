import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { MessageHandler } from '../../sdk/src/message.ts'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'
import type { Fault } from './fake-service.ts'
import { seededRandom } from './manual-clock.ts'

suite('a queue that changes hands', () => {
  test('is given up with all that was begun done and committed; nothing is handled twice', async () => {
    const { clock, consumer, log, groups, committed } = setUp({ settings: { threadSize: 3, consumerBatchSize: 2 } })
    const { seen, handler } = recorder()
    const slowly: MessageHandler = async (messages, context) => {
      await clock.sleep(700, context.signal)
      handler(messages)
    }
    const first = consumer(slowly)
    await first.start()
    log.put(1, bodies(100))
    log.put(2, bodies(100))
    await clock.advance(3_100)
    const second = consumer(slowly)
    await second.start()
    await clock.advance(60_000)
    assert.deepEqual(seen.toSorted(), [...upTo(1, 100), ...upTo(2, 100)].toSorted())
    assert.deepEqual(committed(), [100, 100])
    assert.deepEqual(
      groups.history.filter(step => / 2 /.test(step)).map(step => step.replace(/ at .*/, '')),
      ['give 2 to 1', 'release 2 by 1', 'give 2 to 2'],
    )
    await Promise.all([first.stop(), second.stop()])
  })

  test('does not disturb the queues that stay', async () => {
    const { clock, consumer, log } = setUp()
    const { seen, handler } = recorder()
    const first = consumer(handler)
    await first.start()
    await clock.advance(1_000)
    const second = consumer(handler)
    await second.start()
    await clock.advance(30_000)
    assert.deepEqual(
      first.events
        .filter(({ type }) => type === 'assigned' || type === 'revoked')
        .map(event => [event.type, 'queueId' in event && event.queueId]),
      [
        ['assigned', 1],
        ['assigned', 2],
        ['revoked', 2],
      ],
    )
    log.put(1, ['a'])
    await clock.advance(10)
    assert.deepEqual(seen, ['1:1'])
    await Promise.all([first.stop(), second.stop()])
  })

  test('goes with its owner to whoever is left when that stops', async () => {
    const { clock, consumer, log, committed } = setUp()
    const { seen, handler } = recorder()
    const [first, second] = [consumer(handler), consumer(handler)]
    await first.start()
    await second.start()
    await clock.advance(20_000)
    log.put(1, bodies(10))
    await clock.advance(100)
    await first.stop()
    log.put(1, bodies(10))
    await clock.advance(20_000)
    assert.deepEqual(seen, upTo(1, 20))
    assert.deepEqual(committed(), [20, 0])
    await second.stop()
  })

  test('leaves running calls the time to finish that the service grants, longer than a stop does', async () => {
    const { clock, consumer, log, committed } = setUp({ settings: { consumerBatchSize: 100 } })
    let isAborted = false
    const first = consumer(
      async (_, { signal }) => {
        await clock.sleep(40_000, signal)
        isAborted = signal.aborted
      },
      { stopTimeoutMs: 1_000 },
    )
    await first.start()
    log.put(2, bodies(10))
    await clock.advance(1_000)
    const second = consumer(() => undefined)
    await second.start()
    await clock.advance(60_000)
    assert.equal(isAborted, false)
    assert.equal(committed()[1], 10)
    assert.equal(second.count('assigned'), 1)
    await Promise.all([first.stop(), second.stop()])
  })

  test('a stop shortens the time of a queue that is already leaving', async () => {
    const { clock, consumer, log } = setUp()
    const first = consumer(() => new Promise(() => undefined), { stopTimeoutMs: 1_000 })
    await first.start()
    log.put(2, bodies(10))
    await clock.advance(1_000)
    const second = consumer(() => undefined)
    await second.start()
    await clock.advance(12_000)
    assert.equal(first.status().queues.find(({ queueId }) => queueId === 2)?.state, 'leaving')
    const stopped = first.stop()
    await clock.advance(1_000)
    await stopped
    await second.stop()
    assert.equal(clock.sleeping, 0)
  })

  test('that comes back while it is being given up is taken up again', async () => {
    const { clock, consumer, log, committed } = setUp()
    const { seen, handler } = recorder()
    const first = consumer(async (messages, { signal }) => {
      await clock.sleep(8_000, signal)
      handler(messages)
    })
    await first.start()
    log.put(2, bodies(10))
    await clock.advance(1_000)
    const second = consumer(handler)
    await second.start()
    await clock.advance(5_500)
    assert.equal(first.status().queues.find(({ queueId }) => queueId === 2)?.state, 'leaving')
    await second.stop()
    await clock.advance(30_000)
    log.put(2, bodies(5))
    await clock.advance(30_000)
    assert.deepEqual(seen, upTo(2, 15))
    assert.deepEqual(committed(), [0, 15])
    await first.stop()
  })

  test('whose final commit has no answer is not lost', async () => {
    const { clock, consumer, log, service, committed } = setUp()
    const { seen, handler } = recorder()
    const first = consumer(handler)
    await first.start()
    log.put(2, bodies(10))
    await clock.advance(100)
    service.onRequest = (operation, { flag }) =>
      operation === 'commitOffset' && flag === 1 ? { kind: 'lose_answer' } : undefined
    const second = consumer(handler)
    await second.start()
    await clock.advance(30_000)
    log.put(2, bodies(10))
    await clock.advance(30_000)
    assert.deepEqual(seen, upTo(2, 20))
    assert.deepEqual(committed(), [0, 20])
    service.onRequest = () => undefined
    await Promise.all([first.stop(), second.stop()])
  })
})

suite('clean changes', () => {
  for (const seed of [1, 2, 3, 4]) {
    test(`joining and leaving at random delivers each message exactly once (seed ${seed})`, async () => {
      const chance = seededRandom(seed)
      const settings = { threadSize: 2, consumerBatchSize: 3 }
      const { clock, consumer, log, committed, queueIds } = setUp({ queues: 5, settings })
      const { seen, handler } = recorder()
      const slowly: MessageHandler = async (messages, { signal }) => {
        await clock.sleep(Math.floor(chance() * 300), signal)
        handler(messages)
      }
      const running: ReturnType<typeof consumer>[] = []
      const stopping: Promise<void>[] = []
      const expected: string[] = []
      const put = (queueId: number, count: number) => {
        const before = log.bodies(queueId).length
        log.put(queueId, bodies(count))
        expected.push(...upTo(queueId, before + count, before + 1))
      }
      for (let step = 0; step < 150; step++) {
        const roll = chance()
        if (running.length === 0 || (roll < 0.1 && running.length < 4)) {
          const made = consumer(slowly)
          running.push(made)
          void made.start()
        } else if (roll < 0.18 && running.length > 1) {
          const [oldest] = running.splice(0, 1)
          if (oldest) stopping.push(oldest.stop())
        } else put(queueIds[Math.floor(chance() * 5)] ?? 1, 1 + Math.floor(chance() * 10))
        await clock.advance(Math.floor(chance() * 1_000))
      }
      await clock.advance(60_000)
      assert.deepEqual(seen.toSorted(), expected.toSorted())
      assert.deepEqual(
        committed(),
        queueIds.map(queueId => log.bodies(queueId).length),
      )
      await Promise.all([...stopping, ...running.map(made => made.stop())])
      assert.equal(clock.sleeping, 0)
    })
  }
})

suite('an owner that is not one any more', () => {
  test('is fenced by its first commit: it stops, aborts its calls, and nothing of theirs counts', async () => {
    const { clock, consumer, log, groups, committed, service } = setUp({
      queues: 1,
      settings: { threadSize: 2, consumerBatchSize: 1 },
    })
    let isAborted = false
    let handled = 0
    const owner = consumer(async ([message], { signal }) => {
      handled++
      if (message?.offset !== 2) return
      await clock.sleep(5_000, signal)
      isAborted = signal.aborted
    })
    await owner.start()
    log.put(1, bodies(3))
    await clock.advance(100)
    groups.seize('billing', 1, 99)
    await clock.advance(500)
    assert.deepEqual([owner.count('fenced'), isAborted, handled], [1, true, 3])
    log.put(1, bodies(3))
    const pulls = service.count('pullData')
    await clock.advance(60_000)
    assert.equal(service.count('pullData'), pulls)
    assert.equal(handled, 3)
    assert.deepEqual(committed(), [0])
    await owner.stop()
    assert.deepEqual(owner.count('revoked'), 0)
  })

  test('takes the queue up again when it is assigned anew', async () => {
    const { clock, consumer, log, groups, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const owner = consumer(handler)
    await owner.start()
    await clock.advance(100)
    groups.seize('billing', 1, 99)
    groups.seize('billing', 1, 1)
    log.put(1, bodies(3))
    await clock.advance(10_000)
    assert.deepEqual(seen.slice(-3), upTo(1, 3))
    assert.deepEqual(committed(), [3])
    await owner.stop()
  })
})

suite('a consumer that the service has given up', () => {
  for (const how of ['a heartbeat', 'a poll'] as const) {
    test(`learns it by ${how}, stops without a commit, and registers again`, async () => {
      const { clock, consumer, log, groups, service, committed } = setUp({ queues: 1 })
      const { seen, handler } = recorder()
      let calls = 0
      const made = consumer(async (messages, { signal }) => {
        if (calls++ > 0) return handler(messages)
        await clock.sleep(60_000, signal)
      })
      await made.start()
      log.put(1, bodies(3))
      await clock.advance(1_000)
      service.requests.length = 0
      groups.expire(1)
      if (how === 'a poll') groups.changeSettings('billing', {})
      await clock.advance(how === 'a poll' ? 6_000 : 10_000)
      assert.equal(made.count('expired'), 1)
      await clock.advance(10_000)
      const operations = service.requests.map(({ operation }) => operation)
      assert.ok(operations.indexOf('register') < operations.indexOf('commitOffset'), 'no commit before it is back')
      assert.deepEqual(seen, upTo(1, 3))
      assert.deepEqual(committed(), [3])
      assert.equal(made.count('registered'), 2)
      assert.equal(new Set([...groups.consumers.values()].map(({ name }) => name)).size, 1)
      await made.stop()
      assert.equal(clock.sleeping, 0)
    })
  }

  test('keeps trying to come back, also when it is refused', async () => {
    const { clock, consumer, log, groups, service } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const made = consumer(handler)
    await made.start()
    groups.expire(1)
    service.onRequest = operation =>
      operation === 'registerConsumerGroup' ? { kind: 'answer', answer: { suc: false, msg: 'not now' } } : undefined
    await clock.advance(300_000)
    service.onRequest = () => undefined
    await clock.advance(20_000)
    log.put(1, ['a'])
    await clock.advance(1_000)
    assert.deepEqual(seen, ['1:1'])
    await made.stop()
  })

  test('while it joins for the first time begins again', async () => {
    const { clock, consumer, groups, service } = setUp({ queues: 1 })
    service.onRequest = operation => {
      if (operation === 'registerConsumerGroup') {
        service.onRequest = () => undefined
        groups.expire(1)
      }
      return undefined
    }
    const made = consumer(() => undefined)
    const started = made.start()
    await clock.advance(10_000)
    await started
    assert.equal(made.status().consumerId, 2)
    await made.stop()
  })

  test('that is stopping does not come back', async () => {
    const { clock, consumer, log, groups } = setUp({ queues: 1 })
    const made = consumer(async (_, { signal }) => clock.sleep(60_000, signal), { stopTimeoutMs: 100_000 })
    await made.start()
    log.put(1, ['a'])
    await clock.advance(1_000)
    const stopped = made.stop()
    groups.expire(1)
    await clock.advance(20_000)
    await stopped
    assert.deepEqual([made.count('registered'), groups.consumers.size, clock.sleeping], [1, 0, 0])
  })
})

suite('faults', () => {
  test('a topic that fails does not disturb another', async () => {
    const { clock, consumer, log, groups, service } = setUp({ queues: 1 })
    log.createTopic('spoilt', 1)
    groups.createGroup('both', ['orders', 'spoilt'])
    const { seen, handler } = recorder()
    const made = consumer(handler, { groupName: 'both', topics: { orders: handler, spoilt: handler } })
    service.onRequest = (operation, { topicName }) =>
      operation === 'pullData' && topicName === 'spoilt'
        ? { kind: 'answer', answer: { suc: false, msg: 'gone' } }
        : undefined
    await made.start()
    for (let round = 0; round < 10; round++) {
      log.put(1, ['a'])
      await clock.advance(1_000)
    }
    assert.deepEqual(seen, upTo(1, 10))
    await made.stop()
  })

  test('each kind of failure of a pull is survived', async () => {
    const kinds: Fault[] = [
      { kind: 'unreachable' },
      { kind: 'lose_answer' },
      { kind: 'hang' },
      { kind: 'answer', answer: {} },
      { kind: 'answer', answer: { suc: true, batches: [null] } },
      { kind: 'answer', answer: { suc: true, batches: 7 } },
      { kind: 'answer', answer: { suc: false } },
      ...([400, 401, 403, 404, 429, 500, 502, 503] as const).map((status): Fault => {
        const code = status === 429 ? 'throttled' : status < 500 ? 'unexpected_status' : 'unavailable'
        return { kind: 'fail', error: new PmqClientError(code, `${status}`, { status }) }
      }),
    ]
    const { clock, consumer, log, service } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const made = consumer(handler)
    await made.start()
    await clock.advance(100)
    for (const fault of kinds) {
      service.onRequest = operation => (operation === 'pullData' ? fault : undefined)
      log.put(1, ['a'])
      await clock.advance(40_000)
      service.onRequest = () => undefined
      await clock.advance(40_000)
    }
    assert.deepEqual(seen, upTo(1, kinds.length))
    await made.stop()
  })

  for (const seed of [1, 2, 3, 4, 5, 6]) {
    test(`members come, go and are cut off at random: all is handled, in order, and committed (seed ${seed})`, async () => {
      const chance = seededRandom(seed)
      const { clock, consumer, log, groups, service, committed, queueIds } = setUp({
        queues: 5,
        settings: { threadSize: 1, consumerBatchSize: 3 },
      })
      let areFaults = true
      service.onRequest = () => {
        const roll = areFaults ? chance() : 1
        if (roll < 0.05) return { kind: 'lose_answer' }
        if (roll < 0.1) return { kind: 'lose_request' }
        if (roll < 0.12) return { kind: 'hang' }
        if (roll < 0.15) return { kind: 'fail', error: new PmqClientError('unavailable', '503', { status: 503 }) }
        return roll < 0.5 ? { kind: 'delay', ms: Math.floor(chance() * 50) } : undefined
      }
      const handled = new Map<number, Set<number>>(queueIds.map(queueId => [queueId, new Set<number>()]))
      const gaps: string[] = []
      const handler: MessageHandler = async (messages, { queueId, signal }) => {
        await clock.sleep(Math.floor(chance() * 30), signal)
        if (signal.aborted) return
        if (chance() < 0.05) throw new Error('no')
        const done = handled.get(queueId)
        for (const { offset } of messages) {
          if (offset > 1 && !done?.has(offset - 1)) gaps.push(`${queueId}:${offset}`)
          done?.add(offset)
        }
      }
      const running = new Set<ReturnType<typeof consumer>>()
      const stopping: Promise<void>[] = []
      for (let step = 0; step < 120; step++) {
        const roll = chance()
        const [oldest] = running
        if (roll < 0.1 && running.size < 4) {
          const made = consumer(handler)
          running.add(made)
          void made.start()
        } else if (roll < 0.16 && oldest && running.size > 1) {
          running.delete(oldest)
          stopping.push(oldest.stop())
        } else if (roll < 0.19 && groups.consumers.size > 0) {
          groups.expire([...groups.consumers.keys()][0] ?? 0)
        } else log.put(queueIds[Math.floor(chance() * 5)] ?? 1, bodies(1 + Math.floor(chance() * 10)))
        await clock.advance(Math.floor(chance() * 1_000))
      }
      areFaults = false
      if (running.size === 0) {
        const made = consumer(handler)
        running.add(made)
        void made.start()
      }
      // Consumers whose leaving was lost are found dead by their missing heartbeats.
      for (let round = 0; round < 12; round++) {
        await clock.advance(10_000)
        for (const { consumerId, heartbeatAtMs } of groups.consumers.values()) {
          if (clock.now() - heartbeatAtMs > 30_000) groups.expire(consumerId)
        }
      }
      const ends = queueIds.map(queueId => log.bodies(queueId).length)
      assert.deepEqual(gaps, [])
      assert.deepEqual(
        queueIds.map(queueId => handled.get(queueId)?.size),
        ends,
      )
      assert.deepEqual(committed(), ends)
      const stops = Promise.all([...stopping, ...[...running].map(made => made.stop())])
      await clock.advance(30_000)
      await stops
      assert.equal(clock.sleeping, 0)
    })
  }
})
