import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { claim, claimOne, commit, fill, idsOf, openClaimed, renew } from './claiming.ts'
import { base, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let queueIds: number[]
beforeEach(async () => {
  service = openService()
  queueIds = await openClaimed(service)
})
afterEach(() => service.close())

const view = async () => (await service.call('getGroup', undefined, { groupName: 'g1' })).queues

describe('a queue that is claimed', () => {
  test('is nobody else’s until the lease ends, and then goes to who asks first', async () => {
    await fill(service, queueIds)
    const first = await claim(service, 'a', { leaseMs: 10_000 })
    assert.equal(first.length, 3)
    service.clock.advance(9_999)
    assert.deepEqual(await claim(service, 'b'), [])
    service.clock.advance(1)
    assert.deepEqual(idsOf(await claim(service, 'b')), queueIds)
    assert.deepEqual(await claim(service, 'c'), [])
  })

  test('is not handed twice to claimants that come at the same moment', async () => {
    const many = await createTopic(service, 't2', 12)
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't2' })
    for (const queueId of many) {
      await service.call('publish', { topicName: 't2', msgs: [{ body: 'a', partitionInfo: { queueId } }] })
    }
    const claims = await Promise.all(['a', 'b', 'c', 'd'].map(claimant => claim(service, claimant, { maxQueues: 6 })))
    assert.deepEqual(idsOf(claims.flat()), many)
  })

  test('moves forward by the commits of its claimant, also late, as long as nobody else has asked', async () => {
    await publish(service, ['a', 'b', 'c'], queueIds[0])
    const queue = await claimOne(service, 'a', { leaseMs: 1_000 })
    assert.equal(await commit(service, queue, 1), 'advanced')
    assert.equal(await commit(service, queue, 1), 'unchanged')
    service.clock.advance(3_600_000)
    assert.equal(await commit(service, queue, 2), 'advanced')
    const taken = await claimOne(service, 'b')
    assert.deepEqual([taken.offset, taken.offsetVersion], [2, queue.offsetVersion + 1])
    assert.equal(await commit(service, queue, 3), 'fenced')
    assert.equal(await commit(service, queue, 3, 1), 'fenced')
    assert.equal((await renew(service, queue))?.outcome, 'fenced')
    assert.equal((await view())[0]?.offset, 2)
    assert.equal(await commit(service, taken, 3), 'advanced')
  })

  test('is free at once when its claimant gives it up, and fences it from then on', async () => {
    await publish(service, ['a', 'b'], queueIds[0])
    const queue = await claimOne(service, 'a', { leaseMs: 900_000 })
    assert.equal(await commit(service, queue, 1, 1), 'advanced')
    assert.equal((await view())[0]?.claimant, undefined)
    assert.equal((await renew(service, queue))?.outcome, 'fenced')
    assert.equal(await commit(service, queue, 2), 'fenced')
    const next = await claimOne(service, 'b')
    assert.deepEqual([next.queueId, next.offset], [queue.queueId, 1])
  })

  test('is free at once also where its claimant gives it up with nothing to commit', async () => {
    await fill(service, queueIds.slice(0, 1))
    const queue = await claimOne(service, 'a')
    assert.equal(await commit(service, queue, 0, 1), 'unchanged')
    assert.equal((await claimOne(service, 'b')).offset, 0)
  })

  test('stays its claimant’s while the lease is renewed, also after its end if nobody else has asked', async () => {
    await fill(service, queueIds)
    const queue = await claimOne(service, 'a', { leaseMs: 10_000 })
    for (const waitedMs of [9_000, 10_001, 60_000]) {
      service.clock.advance(waitedMs)
      assert.deepEqual(await renew(service, queue, 10_000), {
        queueOffsetId: queue.queueOffsetId,
        outcome: 'renewed',
        stopFlag: 0,
      })
      assert.deepEqual(await claim(service, 'b', { queueIds: [queue.queueId] }), [])
    }
    service.clock.advance(10_000)
    assert.equal((await claim(service, 'b', { queueIds: [queue.queueId] })).length, 1)
    assert.equal((await renew(service, queue))?.outcome, 'fenced')
  })

  test('is free and fenced after a reset, and the next claimant goes on from there', async () => {
    await publish(service, ['a', 'b', 'c'], queueIds[0])
    const queue = await claimOne(service, 'a')
    await commit(service, queue, 3)
    await service.call('resetOffsets', { of: { queueId: queue.queueId }, to: { offset: 1 } }, { groupName: 'g1' })
    assert.equal((await renew(service, queue))?.outcome, 'fenced')
    assert.equal(await commit(service, queue, 3, 1), 'fenced')
    const next = await claimOne(service, 'b')
    assert.deepEqual([next.queueId, next.offset], [queue.queueId, 1])
  })

  test('that is stopped tells its claimant by the renewal, and cannot be claimed until it is started', async () => {
    await fill(service, queueIds.slice(0, 2))
    const queue = await claimOne(service, 'a')
    await service.call('stopQueues', { of: 'all' }, { groupName: 'g1' })
    assert.deepEqual(await claim(service, 'b'), [])
    const renewed = await renew(service, queue)
    assert.deepEqual([renewed?.outcome, renewed?.stopFlag], ['renewed', 1])
    assert.equal(await commit(service, queue, 1, 1), 'advanced')
    await publish(service, ['b'], queue.queueId)
    assert.deepEqual(await claim(service, 'b'), [])
    await service.call('startQueues', { of: 'all' }, { groupName: 'g1' })
    assert.equal((await claim(service, 'b')).length, 2)
  })

  test('does not go while its group is asked to, unless the lease is over', async () => {
    await fill(service, queueIds)
    await claimOne(service, 'a', { leaseMs: 10_000 })
    const refused = await service.send('removeGroup', undefined, { groupName: 'g1' })
    assert.equal(refused.status, 409)
    assert.match(String(refused.json.message), /is claimed by a until 2024-01-01T12:30:25/)
    service.clock.advance(10_000)
    await service.call('removeGroup', undefined, { groupName: 'g1' })
  })
})

describe('a renewal', () => {
  test('answers each claim for itself, in order, and names the version of the group', async () => {
    await fill(service, queueIds)
    const [first, second] = await claim(service, 'a')
    assert.ok(first && second)
    await commit(service, first, 1, 1)
    const nobody = { queueOffsetId: 4711, offsetVersion: 1 }
    const queues = [first, second, nobody].map(({ queueOffsetId, offsetVersion }) => ({ queueOffsetId, offsetVersion }))
    const answer = await service.call('renewClaims', { ...base, consumerGroupName: 'g1', queues, leaseMs: 2_000 })
    assert.deepEqual(
      answer.results?.map(({ outcome }) => outcome),
      ['fenced', 'renewed', 'fenced'],
    )
    const { version } = await service.call('getGroup', undefined, { groupName: 'g1' })
    assert.deepEqual([answer.leaseMs, answer.version], [2_000, version])
  })

  test('is refused for a group that is not there, and fenced for queues that nobody has claimed', async () => {
    const queues = [{ queueOffsetId: 1, offsetVersion: 0 }]
    const missing = await service.call('renewClaims', { ...base, consumerGroupName: 'g9', queues })
    assert.deepEqual([missing.suc, missing.msg], [false, 'consumergroup_g9不存在'])
    const { results } = await service.call('renewClaims', { ...base, consumerGroupName: 'g1', queues })
    assert.deepEqual(results, [{ queueOffsetId: 1, outcome: 'fenced' }])
  })
})

describe('the queues of a claimed group', () => {
  test('that are added to its topic become claimable at once, from their beginning', async () => {
    const { queues } = await service.call('addQueues', { count: 2 }, { topicName: 't1' })
    const added = queues.slice(3).map(queue => queue.queueId)
    await fill(service, added)
    assert.deepEqual(
      (await claim(service, 'a')).map(({ queueId, offset }) => [queueId, offset]).toSorted(),
      added.map(queueId => [queueId, 0]),
    )
  })

  test('that are removed from its topic are nobody’s any more', async () => {
    await fill(service, queueIds)
    const queue = await claimOne(service, 'a')
    const place = { topicName: 't1', queueId: String(queue.queueId) }
    await service.call('changeQueue', { readOnly: true }, place)
    service.clock.advance(60_001)
    assert.equal((await service.send('removeQueue', undefined, place)).status, 409)
    assert.equal(await commit(service, queue, 1), 'advanced')
    await service.call('removeQueue', undefined, place)
    assert.equal(await commit(service, queue, 1), 'unknown_queue')
    assert.equal((await renew(service, queue))?.outcome, 'fenced')
    const left = queueIds.filter(queueId => queueId !== queue.queueId)
    assert.deepEqual(idsOf(await claim(service, 'b')), left)
  })

  test('whose topic it does not subscribe to any more are nobody’s', async () => {
    await fill(service, queueIds)
    const queue = await claimOne(service, 'a')
    const { queues, version } = await service.call('unsubscribe', undefined, { groupName: 'g1', topicName: 't1' })
    assert.deepEqual([queues, await claim(service, 'b')], [[], []])
    assert.equal(await commit(service, queue, 1), 'unknown_queue')
    const { results, ...renewed } = await service.call('renewClaims', {
      ...base,
      consumerGroupName: 'g1',
      queues: [{ queueOffsetId: queue.queueOffsetId, offsetVersion: queue.offsetVersion }],
    })
    assert.deepEqual([results?.[0]?.outcome, renewed.version], ['fenced', version])
  })

  test('are not moved by a rebalance, whatever asks for one', async () => {
    await fill(service, queueIds)
    const held = await claim(service, 'a')
    await service.call('rb', { consumerGroupNames: ['g1'] })
    await service.call('updateGroup', {}, { groupName: 'g1' })
    for (const queue of held) assert.equal((await renew(service, queue))?.outcome, 'renewed')
  })
})
