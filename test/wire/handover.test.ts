import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { assignment, base, consume, join, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

/** `flag: 1`: the consumer has stopped these queues. */
async function finalCommit(service: Service, queues: AssignedQueue[], offset: number) {
  const queueOffsets = queues.map(({ queueOffsetId, offsetVersion }) => {
    return { queueOffsetId, offsetVersion, offset, consumerGroupName: 'g1', topicName: 't1' }
  })
  return service.call('commitOffset', { ...base, queueOffsets, flag: 1 })
}

const idsOf = (queues: AssignedQueue[]) => queues.map(queue => queue.queueId)

describe('a hand-over', () => {
  let service: Service
  beforeEach(() => {
    service = openService()
  })
  afterEach(() => service.close())

  /** A consumer that owns four queues, when another joins. */
  async function joined(settings: object = {}) {
    const { consumerId: first } = await consume(service, 4)
    await service.call('subscribe', settings, { groupName: 'g1', topicName: 't1' })
    const before = await assignment(service, first)
    const second = await join(service, 'g1', ['t1'], 'second')
    const after = await assignment(service, first)
    const kept = new Set(idsOf(after.queues))
    return { first, second, before, after, leaving: before.queues.filter(queue => !kept.has(queue.queueId)) }
  }

  test('takes queues out of the assignment of their owner, and gives them to nobody yet', async () => {
    const { second, before, after, leaving } = await joined()
    assert.deepEqual([before.queues.length, after.queues.length, leaving.length], [4, 2, 2])
    assert.ok(after.version > before.version)
    assert.deepEqual((await assignment(service, second)).queues, [])
  })

  test('lets the owner commit what it still finishes', async () => {
    const { leaving } = await joined()
    const [queue] = leaving
    assert.ok(queue)
    await publish(service, ['a'], queue.queueId)
    const { queueOffsetId, offsetVersion } = queue
    const entry = { queueOffsetId, offsetVersion, offset: 1, consumerGroupName: 'g1' }
    const { results } = await service.call('commitOffset', { ...base, queueOffsets: [entry] })
    assert.equal(results?.[0]?.outcome, 'advanced')
  })

  test('ends with the final commit: the next owner goes on where the former one ended', async () => {
    const { second, after, leaving } = await joined()
    for (const { queueId } of leaving) await publish(service, ['a', 'b', 'c'], queueId)
    const { results } = await finalCommit(service, leaving, 2)
    assert.deepEqual(
      results?.map(result => result.outcome),
      ['advanced', 'advanced'],
    )
    const next = await assignment(service, second)
    assert.deepEqual(idsOf(next.queues), idsOf(leaving))
    assert.deepEqual(
      next.queues.map(queue => queue.offset),
      [2, 2],
    )
    assert.ok(next.version > after.version)
  })

  test('fences the former owner from then on', async () => {
    const { leaving } = await joined()
    await finalCommit(service, leaving, 0)
    const { results } = await finalCommit(service, leaving, 9)
    assert.deepEqual(
      results?.map(result => result.outcome),
      ['fenced', 'fenced'],
    )
  })

  test('ends when the owner, with nothing to commit, presents the version that took the queues away', async () => {
    const { first, second, before, after, leaving } = await joined()
    const poll = (version: number) =>
      service.call('getConsumerGroupPolling', {
        ...base,
        consumerId: first,
        consumerGroupVersion: { g1: version },
        waitMs: 0,
      })
    await poll(before.version)
    assert.deepEqual((await assignment(service, second)).queues, [])
    await poll(after.version)
    assert.deepEqual(idsOf((await assignment(service, second)).queues), idsOf(leaving))
  })

  test('is not ended by a client that only compares, with all versions 0', async () => {
    const { first, second } = await joined()
    await assignment(service, first)
    assert.deepEqual((await assignment(service, second)).queues, [])
  })

  test('leaves the queues that do not move alone', async () => {
    const { first, before, after, leaving } = await joined()
    await finalCommit(service, leaving, 0)
    const kept = new Set(idsOf(after.queues))
    const versions = (queues: AssignedQueue[]) =>
      queues.filter(queue => kept.has(queue.queueId)).map(queue => queue.offsetVersion)
    assert.deepEqual(versions((await assignment(service, first)).queues), versions(before.queues))
  })

  test('goes back to the owner when the one that it waits for leaves first', async () => {
    const { first, second, before } = await joined()
    await service.call('deRegister', { ...base, id: second })
    const back = await assignment(service, first)
    assert.deepEqual(
      back.queues.map(({ queueId, offsetVersion }) => [queueId, offsetVersion]),
      before.queues.map(({ queueId, offsetVersion }) => [queueId, offsetVersion]),
    )
  })

  test('does not wait for an owner that has left', async () => {
    const { first, second, before } = await joined()
    await service.call('deRegister', { ...base, id: first })
    assert.deepEqual(idsOf((await assignment(service, second)).queues), idsOf(before.queues))
  })

  test('waits for a slow owner as long as it may take, and then takes the queues', async () => {
    const { first, second, leaving } = await joined()
    const beat = () => service.call('heartbeat', { ...base, consumerId: first, consumerIds: [second], asyn: 0 })
    for (let seconds = 10; seconds < 60; seconds += 10) {
      service.clock.advance(10_000)
      await beat()
      assert.deepEqual((await assignment(service, second)).queues, [])
    }
    service.clock.advance(10_000)
    await beat()
    assert.deepEqual(idsOf((await assignment(service, second)).queues), idsOf(leaving))
    const { results } = await finalCommit(service, leaving, 5)
    assert.deepEqual(
      results?.map(result => result.outcome),
      ['fenced', 'fenced'],
    )
  })

  test('waits for the time-out of a handler and ten seconds more, where its subscription has one', async () => {
    for (const timeoutSeconds of [20, 100]) {
      await service.close()
      service = openService()
      const { first, second, leaving } = await joined({ timeoutSeconds })
      const beat = () => service.call('heartbeat', { ...base, consumerId: first, consumerIds: [second], asyn: 0 })
      for (let seconds = 10; seconds < timeoutSeconds + 10; seconds += 10) {
        service.clock.advance(10_000)
        await beat()
        assert.deepEqual((await assignment(service, second)).queues, [], `after ${seconds} s`)
      }
      service.clock.advance(10_000)
      await beat()
      assert.deepEqual(idsOf((await assignment(service, second)).queues), idsOf(leaving))
    }
  })

  test('ends by the version that is presented also after minutes, while a handler was given that long', async () => {
    const { first, second, after, leaving } = await joined({ timeoutSeconds: 300 })
    const beat = () => service.call('heartbeat', { ...base, consumerId: first, consumerIds: [second], asyn: 0 })
    for (let seconds = 0; seconds < 200; seconds += 10) {
      service.clock.advance(10_000)
      await beat()
    }
    assert.deepEqual((await assignment(service, second)).queues, [])
    const presented = { ...base, consumerId: first, consumerGroupVersion: { g1: after.version }, waitMs: 0 }
    await service.call('getConsumerGroupPolling', presented)
    assert.deepEqual(idsOf((await assignment(service, second)).queues), idsOf(leaving))
  })
})
