import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { assignment, base, consume, firstQueue, join, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let consumerId: number
let queue: AssignedQueue
beforeEach(async () => {
  service = openService()
  consumerId = (await consume(service)).consumerId
  queue = await firstQueue(service, consumerId)
  await publish(service, ['a', 'b', 'c', 'd', 'e'])
})
afterEach(() => service.close())

type Entry = { queueOffsetId?: number; offsetVersion?: number; offset: number }
const commit = (entries: Entry[], flag?: number) =>
  service.call('commitOffset', {
    ...base,
    queueOffsets: entries.map(entry => ({
      queueOffsetId: queue.queueOffsetId,
      offsetVersion: queue.offsetVersion,
      consumerGroupName: 'g1',
      topicName: 't1',
      ...entry,
    })),
    ...(flag !== undefined && { flag }),
  })

suite('commitOffset', () => {
  test('moves the offset forward, and says so', async () => {
    const { suc, results } = await commit([{ offset: 4 }], 0)
    const { queueOffsetId, offsetVersion } = queue
    assert.equal(suc, true)
    assert.deepEqual(results, [{ queueOffsetId, outcome: 'advanced', offset: 4, offsetVersion }])
  })

  test('takes a repeat for one', async () => {
    await commit([{ offset: 4 }])
    assert.equal((await commit([{ offset: 4 }])).results?.[0]?.outcome, 'unchanged')
  })

  test('tells a group nothing of a final commit that was refused', async () => {
    const { version } = await service.call('getGroup', undefined, { groupName: 'g1' })
    assert.equal((await commit([{ offset: 1, offsetVersion: 77 }], 1)).results?.[0]?.outcome, 'fenced')
    assert.equal((await commit([{ offset: 1, queueOffsetId: 4711 }], 1)).results?.[0]?.outcome, 'unknown_queue')
    assert.equal((await service.call('getGroup', undefined, { groupName: 'g1' })).version, version)
  })

  test('never moves the offset back', async () => {
    await commit([{ offset: 4 }])
    assert.equal((await commit([{ offset: 2 }])).results?.[0]?.offset, 4)
    assert.equal((await firstQueue(service, consumerId)).offset, 4)
  })

  test('ends where the log ends, however far a client thinks it is', async () => {
    const { results } = await commit([{ offset: 9_999 }])
    assert.equal(results?.[0]?.offset, 5)
    await publish(service, ['f'])
    assert.equal((await firstQueue(service, consumerId)).offset, 5)
  })

  test('does not let a commit far beyond the log spoil the queue, once all in it is past retention', async () => {
    const { results } = await commit([{ offset: Number.MAX_SAFE_INTEGER }])
    assert.equal(results?.[0]?.offset, 5)
    service.clock.step(30 * 86_400_000)
    const { offsets } = await service.call('publish', { topicName: 't1', msgs: [{ body: 'f' }] })
    assert.equal(offsets?.[0]?.offset, 6)
  })

  test('refuses an older offsetVersion, says so, and is still suc: true', async () => {
    const { suc, results } = await commit([{ offset: 4, offsetVersion: queue.offsetVersion - 1 }])
    assert.deepEqual([suc, results?.[0]?.outcome, results?.[0]?.offset], [true, 'fenced', 0])
  })

  test('refuses a newer offsetVersion too', async () => {
    const { results } = await commit([{ offset: 4, offsetVersion: queue.offsetVersion + 1 }])
    assert.equal(results?.[0]?.outcome, 'fenced')
  })

  test('says that a queue is not known', async () => {
    const { suc, results } = await commit([{ offset: 4, queueOffsetId: 4711 }])
    assert.deepEqual([suc, results], [true, [{ queueOffsetId: 4711, outcome: 'unknown_queue' }]])
  })

  test('says that a queue of an unknown group is not known, and invents no group', async () => {
    const entry = { queueOffsetId: 1, offsetVersion: 0, offset: 1, consumerGroupName: 'nobody' }
    const { results, versions } = await service.call('commitOffset', { ...base, queueOffsets: [entry], flag: 1 })
    assert.deepEqual([results, versions], [[{ queueOffsetId: 1, outcome: 'unknown_queue' }], {}])
    assert.deepEqual((await service.call('listGroups')).groups, ['g1'])
  })

  test('answers each entry for itself, in order', async () => {
    const { results } = await commit([{ offset: 3 }, { offset: 9, offsetVersion: 99 }, { offset: 5 }])
    assert.deepEqual(
      results?.map(result => result.outcome),
      ['advanced', 'fenced', 'advanced'],
    )
  })

  test('names the current version of the group', async () => {
    const { version } = await assignment(service, consumerId)
    assert.deepEqual((await commit([{ offset: 1 }])).versions, { g1: version })
  })

  test('names the version of a group called __proto__', async () => {
    await service.call('createGroup', { name: '__proto__' })
    const entry = { queueOffsetId: 1, offsetVersion: 0, offset: 1, consumerGroupName: '__proto__' }
    const { versions } = await service.call('commitOffset', { ...base, queueOffsets: [entry] })
    assert.deepEqual(Object.keys(versions ?? {}), ['__proto__'])
  })

  for (const request of ['', 'null', '{}', '{"queueOffsets":null}', '{"queueOffsets":[]}']) {
    test(`succeeds with nothing to commit: ${request || 'no body'}`, async () => {
      const { suc, results } = await service.call('commitOffset', request)
      assert.deepEqual([suc, results], [true, []])
    })
  }
})

suite('the final commit (flag 1)', () => {
  test('moves the offset and raises offsetVersion', async () => {
    const { results } = await commit([{ offset: 4 }], 1)
    const { queueOffsetId, offsetVersion } = queue
    assert.deepEqual(results, [{ queueOffsetId, outcome: 'advanced', offset: 4, offsetVersion: offsetVersion + 1 }])
  })

  test('raises metaVersion, and not rbVersion, so that a PMQ client hears of the offset', async () => {
    const metaOf = async () => {
      const request = { ...base, consumerId, consumerGroupVersion: { g1: 0 } }
      return (await service.call('getConsumerGroupPolling', request)).consumerGroups?.g1?.meta
    }
    const before = await metaOf()
    await commit([{ offset: 4 }], 1)
    const after = await metaOf()
    assert.ok(before && after)
    assert.deepEqual([after.metaVersion - before.metaVersion, after.rbVersion - before.rbVersion], [1, 0])
  })

  test('names the raised version', async () => {
    const { version } = await assignment(service, consumerId)
    assert.deepEqual((await commit([{ offset: 4 }], 1)).versions, { g1: version + 1 })
  })

  test('shows in the next poll as the new offset under the new offsetVersion', async () => {
    await commit([{ offset: 4 }], 1)
    const { offset, offsetVersion } = await firstQueue(service, consumerId)
    assert.deepEqual([offset, offsetVersion], [4, queue.offsetVersion + 1])
  })

  test('fences what is committed after it with the same offsetVersion', async () => {
    await commit([{ offset: 4 }], 1)
    assert.equal((await commit([{ offset: 5 }])).results?.[0]?.outcome, 'fenced')
  })

  test('raises offsetVersion also where the offset stays', async () => {
    await commit([{ offset: 4 }])
    const { results } = await commit([{ offset: 4 }], 1)
    assert.deepEqual([results?.[0]?.outcome, results?.[0]?.offsetVersion], ['unchanged', queue.offsetVersion + 1])
  })

  test('is fenced once the queue has another owner, and changes nothing there', async () => {
    await service.call('deRegister', { ...base, id: consumerId })
    const other = await join(service, 'g1', ['t1'], 'other')
    const { results } = await commit([{ offset: 4 }], 1)
    assert.equal(results?.[0]?.outcome, 'fenced')
    assert.equal((await firstQueue(service, other)).offset, 0)
  })
})
