import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { viewGroup } from './operator.ts'
import { assignment, base, consume, firstQueue, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

const group = { groupName: 'g1' }
const reset = (request: object) => service.call('resetOffsets', request, group)
const offsets = async () => (await viewGroup(service)).queues.map(queue => queue.offset)
const commit = (entry: { queueOffsetId: number; offsetVersion: number }, offset: number) =>
  service.call('commitOffset', { ...base, queueOffsets: [{ ...entry, offset, consumerGroupName: 'g1' }] })

describe('a reset', () => {
  test('goes back and forwards, and tells how much is repeated or skipped', async () => {
    const { consumerId } = await consume(service)
    await publish(service, ['a', 'b', 'c', 'd'])
    const { queueOffsetId, offsetVersion } = await firstQueue(service, consumerId)
    await commit({ queueOffsetId, offsetVersion }, 3)
    const back = await reset({ of: 'all', to: { offset: 1 } })
    assert.deepEqual(back.queues, [{ topicName: 't1', queueId: 1, from: 3, to: 1, skips: 0, repeats: 2 }])
    const forwards = await reset({ of: { queueId: 1 }, to: 'end' })
    assert.deepEqual(forwards.queues, [{ topicName: 't1', queueId: 1, from: 1, to: 4, skips: 3, repeats: 0 }])
    await reset({ of: { topicName: 't1' }, to: 'start' })
    assert.deepEqual(await offsets(), [0])
  })

  test('only tells, where it is a dry run', async () => {
    await consume(service)
    await publish(service, ['a', 'b'])
    const { queues } = await reset({ of: 'all', to: 'end', dryRun: true })
    assert.equal(queues[0]?.to, 2)
    assert.deepEqual(await offsets(), [0])
  })

  test('reaches a running consumer by another offsetVersion, and fences what it has in hand', async () => {
    const { consumerId } = await consume(service)
    await publish(service, ['a', 'b'])
    const before = await assignment(service, consumerId)
    await reset({ of: 'all', to: { offset: 1 } })
    const after = await assignment(service, consumerId)
    const [old] = before.queues
    const [fresh] = after.queues
    assert.ok(old && fresh)
    assert.ok(after.version > before.version)
    assert.deepEqual([fresh.offset, fresh.offsetVersion], [1, old.offsetVersion + 1])
    assert.equal((await commit(old, 2)).results?.[0]?.outcome, 'fenced')
    assert.equal((await commit(fresh, 2)).results?.[0]?.outcome, 'advanced')
  })

  test('finds what came at a time or later', async () => {
    await consume(service)
    const times: number[] = []
    for (const body of ['a', 'b', 'c', 'd', 'e']) {
      times.push(service.clock.now())
      await publish(service, [body, body])
      service.clock.advance(1_000)
    }
    const to = async (timeMs: number) => {
      const { queues } = await reset({ of: 'all', to: { timeMs }, dryRun: true })
      return queues[0]?.to
    }
    const [first = 0, , third = 0, , last = 0] = times
    assert.equal(await to(0), 0)
    assert.equal(await to(first), 0)
    assert.equal(await to(first + 1), 2)
    assert.equal(await to(third - 500), 4)
    assert.equal(await to(third), 4)
    assert.equal(await to(last), 8)
    assert.equal(await to(last + 1), 10)
    assert.equal(await to(service.clock.now() + 99_999), 10)
  })

  test('finds the end of an empty queue, whatever the time', async () => {
    await consume(service)
    const { queues } = await reset({ of: 'all', to: { timeMs: service.clock.now() } })
    assert.equal(queues[0]?.to, 0)
  })

  test('refuses an offset behind the end, a group or queue that is not there, and a selection of nothing', async () => {
    await consume(service)
    await publish(service, ['a'])
    const refused = async (request: object, groupName = 'g1') => {
      const { status, json } = await service.send('resetOffsets', request, { groupName })
      return [status, json.message]
    }
    assert.deepEqual(await refused({ of: 'all', to: { offset: 2 } }), [
      400,
      'queue 1 ends at offset 1; 2 lies behind it',
    ])
    assert.deepEqual(await refused({ of: 'all', to: 'end' }, 'g2'), [404, 'there is no group g2'])
    assert.deepEqual(await refused({ of: { queueId: 9 }, to: 'end' }), [404, 'group g1 has no queue of id 9'])
    assert.equal((await refused({ of: {}, to: 'end' }))[0], 400)
    assert.equal((await refused({ to: 'end' }))[0], 400)
    assert.deepEqual(await offsets(), [0])
  })
})

describe('stopping', () => {
  test('tells the owner to stop, outlives a change of owner, and ends with a start', async () => {
    const { consumerId } = await consume(service, 2)
    const before = await assignment(service, consumerId)
    await service.call('stopQueues', { of: { queueId: 1 } }, group)
    const stopped = await assignment(service, consumerId)
    assert.ok(stopped.version > before.version)
    assert.deepEqual(
      stopped.queues.map(queue => queue.stopFlag),
      [1, 0],
    )
    await service.call('deRegister', { ...base, id: consumerId })
    const { queues } = await service.call('startQueues', { of: { topicName: 't1' } }, group)
    assert.deepEqual(
      queues.map(queue => queue.isStopped),
      [false, false, false, false],
    )
  })

  test('loses nothing: what is published meanwhile is there afterwards', async () => {
    const { consumerId } = await consume(service)
    await service.call('stopQueues', { of: 'all' }, group)
    await publish(service, ['a', 'b'])
    await service.call('startQueues', { of: 'all' }, group)
    const { offset, stopFlag } = await firstQueue(service, consumerId)
    assert.deepEqual([offset, stopFlag], [0, 0])
  })
})
