import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { claim, claimOne, commit, fill, idsOf, openClaimed } from './claiming.ts'
import { assignment, base, createGroup, createTopic, register } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let queueIds: number[]
beforeEach(async () => {
  service = openService()
  queueIds = await openClaimed(service)
})
afterEach(() => service.close())

const asking = (request: object) => ({ ...base, consumerGroupName: 'g1', claimant: 'a', ...request })
const view = async () => (await service.call('getGroup', undefined, { groupName: 'g1' })).queues

describe('a claim', () => {
  test('hands out the queues that have something to read, and no others', async () => {
    const [first = 0, , third = 0] = queueIds
    await fill(service, [first, third])
    const queues = await claim(service, 'a')
    assert.deepEqual(idsOf(queues), [first, third])
    assert.deepEqual(
      queues.map(({ offset, offsetVersion, stopFlag }) => [offset, offsetVersion, stopFlag]),
      [
        [0, 1, 0],
        [0, 1, 0],
      ],
    )
  })

  test('hands out nothing where all is consumed', async () => {
    await fill(service, queueIds)
    for (const queue of await claim(service, 'a')) assert.equal(await commit(service, queue, 1, 1), 'advanced')
    assert.deepEqual(await claim(service, 'b'), [])
  })

  test('takes one queue unless it asks for more, and never more than it asks for', async () => {
    await fill(service, queueIds)
    const { queues } = await service.call('claimQueues', asking({}))
    assert.equal(Object.keys(queues ?? {}).length, 1)
    assert.equal((await claim(service, 'b', { maxQueues: 2 })).length, 2)
    assert.deepEqual(await claim(service, 'c'), [])
  })

  test('looks for work in a topic of many queues of which few have some', async () => {
    const many = await createTopic(service, 't2', 40)
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't2' })
    const busy = [many[3] ?? 0, many[21] ?? 0, many[39] ?? 0]
    for (const queueId of busy) {
      await service.call('publish', { topicName: 't2', msgs: [{ body: 'a', partitionInfo: { queueId } }] })
    }
    assert.deepEqual(idsOf(await claim(service, 'a')), busy)
  })

  test('takes only queues of the topics that it names, and only the queues that it names', async () => {
    const others = await createTopic(service, 't2', 2)
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't2' })
    await fill(service, queueIds)
    for (const queueId of others) {
      await service.call('publish', { topicName: 't2', msgs: [{ body: 'a', partitionInfo: { queueId } }] })
    }
    const [first = 0, second = 0] = queueIds
    assert.deepEqual(await claim(service, 'a', { topicNames: ['t3'] }), [])
    assert.deepEqual(await claim(service, 'a', { topicNames: [] }), [])
    assert.deepEqual(await claim(service, 'a', { topicNames: ['t2'], queueIds: [first] }), [])
    assert.deepEqual(idsOf(await claim(service, 'a', { queueIds: [second] })), [second])
    assert.deepEqual(idsOf(await claim(service, 'a', { topicNames: ['t2'] })), others)
    assert.deepEqual(idsOf(await claim(service, 'a', { topicNames: null, queueIds: null })), [first, queueIds[2]])
  })

  test('takes none of the queues that it excepts', async () => {
    await fill(service, queueIds)
    const [first = 0, second = 0, third = 0] = queueIds
    assert.deepEqual(await claim(service, 'a', { exceptQueueIds: queueIds }), [])
    assert.deepEqual(await claim(service, 'a', { queueIds: [first], exceptQueueIds: [first] }), [])
    assert.deepEqual(idsOf(await claim(service, 'a', { exceptQueueIds: [second] })), [first, third])
    assert.deepEqual(idsOf(await claim(service, 'a', { exceptQueueIds: [] })), [second])
  })

  test('names the lease and the version of the group', async () => {
    await fill(service, queueIds)
    const { leaseMs, version } = await service.call('claimQueues', asking({ leaseMs: 5_000 }))
    const { version: shown } = await service.call('getGroup', undefined, { groupName: 'g1' })
    assert.deepEqual([leaseMs, version], [5_000, shown])
  })

  test('shows who holds a queue, and until when', async () => {
    await fill(service, queueIds)
    const { queueId } = await claimOne(service, 'lambda 7', { leaseMs: 5_000 })
    const held = (await view()).filter(queue => queue.claimant !== undefined)
    assert.deepEqual(
      held.map(queue => [queue.queueId, queue.claimant, queue.claimedUntilMs, queue.consumerName]),
      [[queueId, 'lambda 7', service.clock.now() + 5_000, undefined]],
    )
  })

  test('is refused for a group that is not there, or that is shared out otherwise', async () => {
    await createGroup(service, 'g2', ['t1'])
    await service.call('createGroup', { name: 'g3', mode: 'broadcast' })
    const refused = async (consumerGroupName: string) => {
      const { suc, msg, queues } = await service.call('claimQueues', asking({ consumerGroupName }))
      assert.deepEqual([suc, queues], [false, undefined])
      return msg
    }
    assert.equal(await refused('g4'), 'consumergroup_g4不存在')
    assert.equal(await refused('no such name!'), 'consumergroup_no such name!不存在')
    assert.match(String(await refused('g2')), /group g2 is balanced/)
    assert.match(String(await refused('g3')), /group g3 is broadcast/)
  })

  for (const [what, wrong] of [
    ['no claimant', { claimant: undefined }],
    ['an empty claimant', { claimant: '' }],
    ['0 queues', { maxQueues: 0 }],
    ['101 queues', { maxQueues: 101 }],
    ['a lease of less than a second', { leaseMs: 999 }],
    ['a lease of more than 15 minutes', { leaseMs: 900_001 }],
  ] as const) {
    test(`is a bad request with ${what}`, async () => {
      assert.equal((await service.send('claimQueues', asking(wrong))).status, 400)
    })
  }

  test('is the only way to the queues of a claimed group: nobody is a member', async () => {
    await createGroup(service, 'g2', ['t1'])
    const consumerId = await register(service)
    const joining = { ...base, consumerId, consumerGroupNames: { g2: ['t1'], g1: ['t1'] } }
    const { suc, msg } = await service.call('registerConsumerGroup', joining)
    assert.deepEqual([suc, msg], [false, 'group g1 has no members: its queues are claimed'])
    for (const groupName of ['g1', 'g2']) {
      assert.deepEqual((await service.call('getGroup', undefined, { groupName })).members, [])
    }
    assert.deepEqual((await assignment(service, consumerId)).queues, [])
  })
})
