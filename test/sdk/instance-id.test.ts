import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createClient } from '../../sdk/src/client.ts'
import type { MessageHandler } from '../../sdk/src/message.ts'
import type { Transport } from '../../sdk/src/transport.ts'
import { bodies, recorder, setUp, upTo } from './consumer-setup.ts'
import { createManualClock, seededRandom, settle } from './manual-clock.ts'

const place = { instanceId: 'pod-0' }
const other = { instanceId: 'pod-1' }

/** What was asked since, of what matters for who has which queue: heartbeats and pulls go on by themselves. */
const asked = ({ service }: ReturnType<typeof setUp>) =>
  service.requests
    .filter(({ operation }) => operation !== 'heartbeat' && operation !== 'pullData')
    .map(({ operation, request }) => {
      if (operation === 'commitOffset') return `commit ${request.flag}`
      return request.keepsPlace ? 'keep the place' : operation
    })

suite('a consumer with an instanceId that stops', () => {
  test('lets calls end, commits what they did, and keeps its queues', async () => {
    const world = setUp({ queues: 1 })
    const { clock, consumer, log, groups, service, committed } = world
    const made = consumer(async (_, { signal }) => clock.sleep(3_000, signal), place)
    await made.start()
    log.put(1, bodies(30))
    await clock.advance(1_000)
    service.requests.length = 0
    const stopped = made.stop()
    await clock.advance(2_000)
    await stopped
    assert.deepEqual(asked(world), ['commit 0', 'keep the place'])
    assert.deepEqual(groups.history, ['give 1 to 1 at 0'])
    assert.deepEqual(committed(), [10])
    assert.deepEqual(made.types().slice(-1), ['kept'])
    assert.equal(made.status().state, 'stopped')
    await clock.advance(60_000)
    assert.deepEqual([service.requests.length, clock.sleeping], [2, 0])
  })

  test('says only that it has stopped where there is nothing to commit', async () => {
    const world = setUp()
    const { clock, consumer, service } = world
    const made = consumer(() => undefined, place)
    await made.start()
    await clock.advance(10_000)
    service.requests.length = 0
    await made.stop()
    assert.deepEqual(asked(world), ['keep the place'])
    assert.deepEqual([made.count('kept'), made.count('deregistered')], [2, 0])
  })

  test('leaves where it is told to, at once or while the stop is under way', async () => {
    for (const isLate of [false, true]) {
      const world = setUp({ queues: 1 })
      const { clock, consumer, log, groups, service } = world
      const made = consumer(async (_, { signal }) => clock.sleep(3_000, signal), place)
      await made.start()
      log.put(1, ['a'])
      await clock.advance(1_000)
      service.requests.length = 0
      const stops = [made.stop({ leave: !isLate })]
      await clock.advance(1_000)
      if (isLate) stops.push(made.stop({ leave: true }))
      await clock.advance(1_000)
      await Promise.all(stops)
      assert.deepEqual(asked(world), ['commit 1', 'deRegister'])
      assert.deepEqual([groups.consumers.size, groups.ownerOf('billing', 1)], [0, 0])
    }
  })

  test('left for good once still keeps its queues at the next stop', async () => {
    const { consumer, groups } = setUp({ queues: 1 })
    const made = consumer(() => undefined, place)
    await made.start()
    await made.stop({ leave: true })
    await made.start()
    await settle()
    await made.stop()
    assert.equal(groups.ownerOf('billing', 1), 2)
  })

  test('takes whatever a listener is called with for no options', async () => {
    const { consumer, groups } = setUp({ queues: 1 })
    for (const given of ['SIGTERM', null, 15]) {
      const made = consumer(() => undefined, place)
      await made.start()
      await (made.stop as (given: unknown) => Promise<void>)(given)
      assert.equal(groups.consumers.size, 1)
    }
  })

  test('still hands over a queue that was going to another member', async () => {
    const { clock, consumer, log, groups, committed } = setUp()
    const first = consumer(async (_, { signal }) => clock.sleep(8_000, signal), place)
    await first.start()
    log.put(1, bodies(10))
    log.put(2, bodies(10))
    await clock.advance(1_000)
    const second = consumer(() => undefined, other)
    await second.start()
    await clock.advance(5_000)
    const stopped = first.stop()
    await clock.advance(5_000)
    await stopped
    assert.deepEqual([groups.ownerOf('billing', 1), groups.ownerOf('billing', 2)], [1, 2])
    assert.deepEqual(committed(), [10, 10])
    assert.deepEqual([first.count('kept'), first.count('revoked')], [1, 1])
    await second.stop()
  })

  test('while it joins keeps the place if it may have it, and takes back what it has registered if not', async () => {
    const outcomes = [
      { fault: { kind: 'lose_answer' }, leaves: false },
      { fault: { kind: 'hang' }, leaves: false },
      { fault: { kind: 'unreachable' }, leaves: true },
    ] as const
    for (const { fault, leaves } of outcomes) {
      const { clock, consumer, service } = setUp({ queues: 1 })
      service.onRequest = operation => (operation === 'registerConsumerGroup' ? fault : undefined)
      const made = consumer(() => undefined, place)
      const started = made.start()
      await clock.advance(50)
      const stopped = made.stop()
      await clock.advance(10_000)
      await Promise.all([started, stopped])
      const left = service.requests.filter(
        ({ operation, request }) => operation === 'deRegister' && !request.keepsPlace,
      )
      assert.equal(left.length > 0, leaves, fault.kind)
    }
  })

  test('is refused: what it has registered is taken back', async () => {
    const { consumer, groups } = setUp()
    const made = consumer(() => undefined, { ...place, groupName: 'nobody' })
    await assert.rejects(made.start(), { code: 'refused' })
    assert.equal(groups.consumers.size, 0)
  })
})

suite('a restart with the same instanceId', () => {
  test('goes on with the same queues, and moves nothing of the others', async () => {
    const { clock, consumer, log, groups, committed, queueIds } = setUp({ queues: 4 })
    const { seen, handler } = recorder()
    const first = consumer(handler, place)
    await first.start()
    const second = consumer(handler, other)
    await second.start()
    await clock.advance(20_000)
    const ownersBefore = queueIds.map(queueId => groups.ownerOf('billing', queueId))
    assert.deepEqual(ownersBefore, [1, 2, 1, 2])
    for (const queueId of queueIds) log.put(queueId, bodies(10))
    await clock.advance(200)
    const eventsBefore = second.events.length
    await first.stop()
    for (const queueId of queueIds) log.put(queueId, bodies(10))
    await clock.advance(20_000)
    const third = consumer(handler, place)
    await third.start()
    await settle()
    assert.deepEqual(
      queueIds.map(queueId => groups.ownerOf('billing', queueId)),
      [3, 2, 3, 2],
    )
    await clock.advance(1_000)
    assert.deepEqual(seen.toSorted(), queueIds.flatMap(queueId => upTo(queueId, 20)).toSorted())
    assert.deepEqual(committed(), [20, 20, 20, 20])
    assert.deepEqual(second.types().slice(eventsBefore), [], 'the other member has noticed nothing')
    await Promise.all([second.stop(), third.stop()])
    assert.equal(clock.sleeping, 0)
  })

  test('of the same consumer goes on where it was', async () => {
    const { clock, consumer, log, groups, committed } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const made = consumer(handler, place)
    for (let round = 0; round < 3; round++) {
      await made.start()
      log.put(1, bodies(10))
      await clock.advance(100)
      await made.stop()
      await clock.advance(10_000)
    }
    assert.deepEqual(seen, upTo(1, 30))
    assert.deepEqual(committed(), [30])
    assert.deepEqual(groups.history, ['give 1 to 1 at 0'])
  })

  test('after a crash has the queues at once, and what was not committed is handed out again', async () => {
    const { clock, consumer, log, groups, committed } = setUp({ queues: 1, settings: { consumerBatchSize: 5 } })
    const { seen, handler } = recorder()
    const crashed = consumer(async (messages, { signal }) => {
      if (messages[0]?.offset === 6) await clock.sleep(3_600_000, signal)
      handler(messages)
    }, place)
    await crashed.start()
    log.put(1, bodies(10))
    await clock.advance(1_000)
    crashed.network.isCut = true
    const next = consumer(handler, place)
    await next.start()
    await settle()
    assert.deepEqual(seen, [...upTo(1, 5), ...upTo(1, 10, 6)])
    await clock.advance(1_000)
    assert.deepEqual(committed(), [10])
    assert.deepEqual(groups.history, ['give 1 to 1 at 0', 'replace 1 by 2', 'give 1 to 2 at 5'])
    const stops = Promise.all([next.stop(), crashed.stop()])
    await clock.advance(30_000)
    await stops
  })

  test('after the session has timed out joins as a new member of the same id', async () => {
    const { clock, consumer, log, groups } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const first = consumer(handler, place)
    await first.start()
    await first.stop()
    groups.expire(1)
    const second = consumer(handler, place)
    await second.start()
    log.put(1, ['a'])
    await clock.advance(1_000)
    assert.deepEqual([seen, groups.consumers.get(2)?.instanceId], [['1:1'], 'pod-0'])
    await second.stop()
  })

  for (const seed of [1, 2, 3]) {
    test(`rolling restarts at random deliver each message once, and keep each queue in its place (seed ${seed})`, async () => {
      const chance = seededRandom(seed)
      const settings = { threadSize: 2, consumerBatchSize: 3 }
      const { clock, consumer, log, groups, committed, queueIds } = setUp({ queues: 6, settings })
      const { seen, handler } = recorder()
      const slowly: MessageHandler = async (messages, { signal }) => {
        await clock.sleep(Math.floor(chance() * 300), signal)
        handler(messages)
      }
      const ids = ['pod-0', 'pod-1', 'pod-2']
      const running = ids.map(instanceId => consumer(slowly, { instanceId }))
      for (const made of running) await made.start()
      await clock.advance(30_000)
      const placeOf = (queueId: number) => groups.consumers.get(groups.ownerOf('billing', queueId) ?? 0)?.instanceId
      const before = queueIds.map(placeOf)
      assert.equal(new Set(before).size, 3)
      const expected: string[] = []
      for (let step = 0; step < 60; step++) {
        const queueId = queueIds[Math.floor(chance() * 6)] ?? 1
        const from = log.bodies(queueId).length + 1
        log.put(queueId, bodies(1 + Math.floor(chance() * 10)))
        expected.push(...upTo(queueId, log.bodies(queueId).length, from))
        await clock.advance(Math.floor(chance() * 500))
        const index = Math.floor(chance() * 3)
        if (chance() > 0.3) continue
        const stopped = running[index]?.stop()
        await clock.advance(1_000 + Math.floor(chance() * 10_000))
        await stopped
        const made = consumer(slowly, { instanceId: ids[index] })
        running[index] = made
        await made.start()
        await settle()
        assert.deepEqual(queueIds.map(placeOf), before)
      }
      await clock.advance(60_000)
      assert.deepEqual(seen.toSorted(), expected.toSorted())
      assert.deepEqual(
        committed(),
        queueIds.map(queueId => log.bodies(queueId).length),
      )
      await Promise.all(running.map(made => made.stop()))
      assert.equal(clock.sleeping, 0)
    })
  }
})

suite('a consumer whose place another one has taken', () => {
  for (const how of ['a heartbeat', 'a poll', 'a commit'] as const) {
    test(`learns it by ${how}: it stops, aborts its calls, says so, and does not come back`, async () => {
      const { clock, consumer, log, groups, service } = setUp({ queues: 1 })
      let isAborted = false
      const older = consumer(async (_, { signal }) => {
        await clock.sleep(how === 'a commit' ? 2_000 : 600_000, signal)
        isAborted = signal.aborted
      }, place)
      await older.start()
      log.put(1, bodies(20))
      await clock.advance(1_000)
      const newer = consumer(() => undefined, place)
      await newer.start()
      service.requests.length = 0
      if (how === 'a heartbeat') service.onRequest = keepFrom('pullData', 'getConsumerGroupPolling')
      else service.onRequest = keepFrom('heartbeat', how === 'a commit' ? 'pullData' : 'commitOffset')
      await clock.advance(15_000)
      service.onRequest = () => undefined
      assert.equal(older.status().state, 'stopped')
      assert.equal(isAborted, true)
      const said = older.events.filter(event => event.type === 'replaced')
      const [event] = said
      assert.deepEqual(
        [said.length, event?.consumerId, event?.instanceId, event?.error.code, event?.error.retryable],
        [1, 1, 'pod-0', 'replaced', false],
      )
      await clock.advance(3_600_000)
      // What it registered to come back it takes back.
      for (const name of ['register', 'deRegister'] as const) assert.equal(service.count(name), 1, name)
      assert.equal(groups.ownerOf('billing', 1), 2)
      assert.deepEqual([older.count('expired'), newer.status().state], [1, 'running'])
      await newer.stop()
      assert.equal(clock.sleeping, 0)
    })
  }

  test('may be started again by hand, also by its listener, and takes the place back', async () => {
    const { clock, consumer, log } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    let restarts = 0
    const older = consumer(handler, {
      ...place,
      onEvent: ({ type }) => {
        if (type === 'replaced' && restarts++ === 0) void older.start()
      },
    })
    await older.start()
    const newer = consumer(() => assert.fail('it has nothing to do any more'), place)
    await newer.start()
    await clock.advance(30_000)
    log.put(1, ['a'])
    await clock.advance(1_000)
    assert.deepEqual([older.status().state, newer.status().state, seen], ['running', 'stopped', ['1:1']])
    await older.stop()
  })

  test('before its start is over does not come back either', async () => {
    const asked: string[] = []
    let joins = 0
    const answers: Record<string, () => object> = {
      register: () => ({ suc: true, id: 1 }),
      registerConsumerGroup: () => (joins++ === 0 ? { suc: true } : { suc: false, msg: 'taken', replaced: true }),
      getConsumerGroupPolling: () => ({ suc: true, consumerDeleted: 1 }),
      deRegister: () => ({ suc: true }),
    }
    // In the same process, it answers within the turn.
    const transport: Transport = path => {
      const operation = path.split('/').at(-1) ?? ''
      asked.push(operation)
      return Promise.resolve(answers[operation]?.())
    }
    const client = createClient({ transport, clock: createManualClock(), onEvent: () => undefined })
    const made = client.consumer({ groupName: 'billing', topics: { orders: () => undefined }, ...place })
    await made.start()
    await settle()
    assert.equal(made.status().state, 'stopped')
    const joining = ['register', 'registerConsumerGroup']
    assert.deepEqual(asked, [...joining, 'getConsumerGroupPolling', ...joining, 'deRegister'])
  })

  test('while it stops ends its stop without leaving the group for the other one', async () => {
    const { clock, consumer, log, groups, service } = setUp({ queues: 1 })
    const slowly: MessageHandler = async (_, { signal }) => clock.sleep(600_000, signal)
    const older = consumer(slowly, { ...place, stopTimeoutMs: 600_000 })
    await older.start()
    log.put(1, ['a'])
    await clock.advance(1_000)
    const stopped = older.stop({ leave: true })
    const newer = consumer(() => undefined, place)
    await newer.start()
    await clock.advance(15_000)
    await stopped
    assert.equal(service.count('deRegister'), 0)
    assert.deepEqual([groups.ownerOf('billing', 1), older.count('expired')], [2, 1])
    await newer.stop()
  })

  test('of ten that are started with one id the last one stays', async () => {
    const { clock, consumer, log } = setUp()
    const { seen, handler } = recorder()
    const all = Array.from({ length: 10 }, () => consumer(handler, place))
    for (const made of all) {
      await made.start()
      await clock.advance(300)
    }
    await clock.advance(60_000)
    assert.deepEqual(
      all.map(made => made.status().state),
      [...Array.from({ length: 9 }, () => 'stopped'), 'running'],
    )
    log.put(1, ['a'])
    log.put(2, ['a'])
    await clock.advance(1_000)
    assert.deepEqual(seen.toSorted(), ['1:1', '2:1'])
    await all.at(-1)?.stop()
  })
})

suite('a consumer with an instanceId that the service has given up', () => {
  test('for its silence joins again with the same id', async () => {
    const { clock, consumer, log, groups, service } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const made = consumer(handler, place)
    await made.start()
    await clock.advance(1_000)
    groups.expire(1)
    assert.equal(made.status().consumerId, 1)
    await clock.advance(20_000)
    const ids = service.requests
      .filter(({ operation }) => operation === 'registerConsumerGroup')
      .map(({ request }) => request.instanceId)
    assert.deepEqual(ids, ['pod-0', 'pod-0'])
    assert.deepEqual([made.count('expired'), made.count('replaced'), made.status().consumerId], [1, 0, 2])
    log.put(1, ['a'])
    await clock.advance(1_000)
    assert.deepEqual(seen, ['1:1'])
    await made.stop()
    assert.equal(groups.ownerOf('billing', 1), 2)
  })

  test('has no id while the service does not know it', async () => {
    const { clock, consumer, groups, service } = setUp({ queues: 1 })
    const made = consumer(() => undefined, place)
    await made.start()
    await clock.advance(1_000)
    groups.expire(1)
    service.onRequest = operation => (operation === 'register' ? { kind: 'unreachable' } : undefined)
    await clock.advance(20_000)
    assert.deepEqual([made.status().state, made.status().consumerId], ['running', undefined])
    service.requests.length = 0
    await made.stop()
    assert.equal(service.requests.length, 0, 'there is nothing to leave')
  })

  test('and stops while it comes back takes back what it has registered', async () => {
    const { clock, consumer, groups, service } = setUp({ queues: 1 })
    const made = consumer(() => undefined, place)
    await made.start()
    await clock.advance(1_000)
    groups.expire(1)
    service.onRequest = operation => (operation === 'registerConsumerGroup' ? { kind: 'unreachable' } : undefined)
    await clock.advance(20_000)
    await made.stop()
    assert.equal(groups.consumers.size, 0)
  })
})

/** Refuses some operations, so that news comes another way. */
const keepFrom =
  (...names: string[]) =>
  (operation: string) =>
    names.includes(operation) ? ({ kind: 'unreachable' } as const) : undefined
