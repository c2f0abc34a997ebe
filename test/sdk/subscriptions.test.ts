import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { recorder, setUp, upTo } from './consumer-setup.ts'

/** Group `both` with topics `orders` (queues 1 and 2) and `letters` (queues 3 and 4). */
function setUpBoth() {
  const world = setUp({ queues: 2 })
  world.log.createTopic('letters', 2)
  world.groups.createGroup('both', ['orders', 'letters'])
  const ofBoth = [1, 2, 3, 4].map(queueId => [queueId, () => world.groups.committed('both', queueId)] as const)
  return { ...world, committedOfBoth: () => ofBoth.map(([, committed]) => committed()) }
}

suite('a topic that the group does not subscribe to', () => {
  test('is told at each registration, and keeps nothing else from working', async () => {
    const { clock, consumer, log, groups } = setUp({ queues: 1 })
    const { seen, handler } = recorder()
    const made = consumer(handler, { topics: { orders: handler, letters: handler, parcels: handler } })
    const told = () => made.events.flatMap(event => (event.type === 'not_subscribed' ? [event] : []))
    await made.start()
    const ofBilling = { type: 'not_subscribed', groupName: 'billing' } as const
    assert.deepEqual(told(), [
      { ...ofBilling, topicName: 'letters' },
      { ...ofBilling, topicName: 'parcels' },
    ])
    log.put(1, ['a'])
    await clock.advance(1_000)
    groups.expire(1)
    await clock.advance(20_000)
    assert.equal(told().length, 4)
    log.put(1, ['a'])
    await clock.advance(1_000)
    assert.deepEqual(seen, upTo(1, 2))
    await made.stop()
  })

  test('is not told of where the service says nothing, or that all are', async () => {
    for (const notSubscribed of [undefined, {}, { other: ['orders'] }]) {
      const { consumer, service } = setUp({ queues: 1 })
      const answer = { suc: true, consumerGroupNameNew: {}, notSubscribed }
      service.onRequest = operation => (operation === 'registerConsumerGroup' ? { kind: 'answer', answer } : undefined)
      const made = consumer(() => undefined)
      await made.start()
      assert.deepEqual([made.count('registered'), made.count('not_subscribed')], [1, 0])
      await made.stop()
    }
  })
})

suite('an assigned queue of a topic without a handler', () => {
  test('is left alone and told, and the others are worked on', async () => {
    const { clock, consumer, log, service, committedOfBoth } = setUpBoth()
    const { seen, handler } = recorder()
    const made = consumer(handler, { groupName: 'both', topics: { orders: handler } })
    await made.start()
    for (const queueId of [1, 2, 3, 4]) log.put(queueId, ['a', 'b'])
    await clock.advance(10_000)
    assert.deepEqual(seen.toSorted(), [...upTo(1, 2), ...upTo(2, 2)])
    assert.deepEqual(committedOfBoth(), [2, 2, 0, 0])
    const told = made.events.filter(event => event.type === 'no_handler')
    assert.deepEqual(
      told,
      [3, 4].map(queueId => ({ type: 'no_handler', groupName: 'both', topicName: 'letters', queueId })),
    )
    assert.deepEqual(
      made.status().queues.map(({ queueId }) => queueId),
      [1, 2],
    )
    assert.equal(
      service.requests.some(({ operation, request }) => operation === 'pullData' && request.queueId > 2),
      false,
    )
    await made.stop()
    assert.equal(clock.sleeping, 0)
  })

  test('is no trouble where its name is one that every object has', async () => {
    const { clock, consumer, log, groups } = setUp({ queues: 1 })
    log.createTopic('constructor', 1)
    groups.createGroup('both', ['orders', 'constructor'])
    const { seen, handler } = recorder()
    const made = consumer(handler, { groupName: 'both' })
    await made.start()
    log.put(1, ['a'])
    log.put(2, ['a'])
    await clock.advance(1_000)
    assert.deepEqual([seen, made.count('no_handler')], [['1:1'], 1])
    await made.stop()
  })
})

suite('a queue that is removed', () => {
  test('disturbs no other, of its topic or another, while the group still has it', async () => {
    const { clock, consumer, log, committedOfBoth } = setUpBoth()
    const { seen, handler } = recorder()
    const made = consumer(handler, { groupName: 'both', topics: { orders: handler, letters: handler } })
    await made.start()
    await clock.advance(1_000)
    log.queues.delete(3)
    for (let round = 0; round < 60; round++) {
      for (const queueId of [1, 2, 4]) log.put(queueId, ['a'])
      await clock.advance(1_000)
      const done = [1, 2, 4].flatMap(queueId => upTo(queueId, round + 1))
      assert.deepEqual(seen.toSorted(), done.toSorted())
    }
    assert.deepEqual(committedOfBoth(), [60, 60, 0, 60])
    const failed = made.events.filter(event => event.type === 'request_failed')
    assert.deepEqual(
      new Set(failed.map(({ operation, queueId }) => `${operation} ${queueId}`)),
      new Set(['pullData 3']),
    )
    assert.match(failed[0]?.error.message ?? '', /queueId_3_is_not_exist/)
    assert.ok(failed.length > 5 && failed.length < 60, `${failed.length} failures`)
    assert.deepEqual(
      made.status().queues.map(({ failedPulls }) => failedPulls > 0),
      [false, false, true, false],
    )
    await made.stop()
    assert.equal(clock.sleeping, 0)
  })

  test('is worked on no more when the assignment tells of it', async () => {
    const { clock, consumer, log, groups, service, committedOfBoth } = setUpBoth()
    const { handler } = recorder()
    const made = consumer(handler, { groupName: 'both', topics: { orders: handler, letters: handler } })
    await made.start()
    for (const queueId of [1, 2, 3, 4]) log.put(queueId, ['a'])
    await clock.advance(10_000)
    log.queues.delete(3)
    log.queues.delete(4)
    groups.unsubscribe('both', 'letters')
    await clock.advance(15_000)
    assert.deepEqual([made.count('removed'), made.count('fenced'), made.count('revoked')], [2, 0, 0])
    assert.deepEqual(
      made.status().queues.map(({ queueId }) => queueId),
      [1, 2],
    )
    service.requests.length = 0
    log.put(1, ['a'])
    await clock.advance(60_000)
    assert.deepEqual(committedOfBoth(), [2, 1, undefined, undefined])
    assert.equal(
      service.requests.some(({ request }) => request.queueId > 2),
      false,
    )
    await made.stop()
  })

  test('ends its work quietly where a commit is the first to learn of it', async () => {
    const { clock, consumer, log, groups, service, committedOfBoth } = setUpBoth()
    const { seen, handler } = recorder()
    let isAborted = false
    const letters = async ([message]: readonly { offset: number }[], { signal }: { signal: AbortSignal }) => {
      if (message?.offset === 1) return
      await clock.sleep(600_000, signal)
      isAborted = signal.aborted
    }
    const made = consumer(handler, { groupName: 'both', topics: { orders: handler, letters } })
    groups.changeSettings('both', { consumerBatchSize: 1 })
    await made.start()
    await clock.advance(10_000)
    service.onRequest = operation => (operation === 'getConsumerGroupPolling' ? { kind: 'unreachable' } : undefined)
    log.put(3, ['a', 'b', 'c'])
    log.put(1, ['a'])
    await clock.advance(100)
    groups.unsubscribe('both', 'letters')
    await clock.advance(1_000)
    assert.deepEqual([made.count('removed'), made.count('fenced'), isAborted], [1, 0, true])
    const removed = made.events.find(event => event.type === 'removed')
    assert.deepEqual([removed?.topicName, removed?.queueId, removed?.offset], ['letters', 3, 0])
    service.onRequest = () => undefined
    log.put(1, ['b'])
    await clock.advance(15_000)
    assert.deepEqual(seen, upTo(1, 2))
    assert.deepEqual(committedOfBoth(), [2, 0, undefined, undefined])
    assert.deepEqual(
      made.status().queues.map(({ queueId }) => queueId),
      [1, 2],
    )
    service.requests.length = 0
    await clock.advance(60_000)
    assert.equal(service.count('commitOffset'), 0)
    await made.stop()
    assert.equal(clock.sleeping, 0)
  })
})
