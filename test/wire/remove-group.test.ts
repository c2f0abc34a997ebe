import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { commit, refusal, viewGroup, viewTopic } from './operator.ts'
import { assignment, base, consume, createGroup, createTopic, firstQueue, join, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService({ settings: { subEnvironments: true } })
})
afterEach(() => service.close())

const g1 = { groupName: 'g1' }
const remove = (parameters = g1) => service.call('removeGroup', undefined, parameters)
const refused = (parameters = g1) => refusal(service, 'removeGroup', undefined, parameters)

describe('a group', () => {
  test('is removed with its subscriptions and offsets, and nobody knows it any more', async () => {
    const { consumerId } = await consume(service)
    const queue = await firstQueue(service, consumerId)
    await service.call('deRegister', { ...base, id: consumerId })
    assert.deepEqual(await remove(), { removed: 'g1' })
    assert.deepEqual(await service.call('listGroups'), { groups: [] })
    assert.deepEqual((await viewTopic(service)).groups, [])
    assert.equal((await refusal(service, 'getGroup', undefined, g1))[0], 404)
    assert.equal(await commit(service, queue, 1), 'unknown_queue')
    assert.deepEqual(await service.core.store.listAwakeGroups(), [])
    const { suc, msg } = await service.call('getMessageCount', { ...base, consumerGroupName: 'g1' })
    assert.deepEqual([suc, msg], [false, 'ConsumerGroupName不存在！'])
  })

  test('is not removed while it has members: they are named', async () => {
    await consume(service)
    await join(service, 'g1', ['t1'], 'another')
    assert.deepEqual(await refused(), [
      409,
      'conflict',
      'group g1 has 2 members (10.1.1.1|28959|5298|8087, another): stop these consumers first',
    ])
    assert.equal((await viewGroup(service)).members.length, 2)
  })

  test('is not removed while a claim on one of its queues runs; when that is over it is', async () => {
    await createTopic(service, 't1')
    await service.call('createGroup', { name: 'g1', mode: 'claimed' })
    await service.call('subscribe', {}, { ...g1, topicName: 't1' })
    await publish(service, ['a'])
    await service.call('claimQueues', { consumerGroupName: 'g1', claimant: 'a', leaseMs: 1_000 })
    const [status, code, message] = await refused()
    assert.deepEqual([status, code], [409, 'conflict'])
    assert.equal(message, 'queue 1 of group g1 is claimed by a until 2024-01-01T12:30:16.007Z')
    service.clock.advance(1_000)
    await remove()
  })

  test('is not removed while its copy for a sub-environment has members; then it goes with its copies', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    const { id } = await service.call('register', { ...base, name: 'a' })
    const joining = { ...base, consumerId: id, subEnv: 'dev', consumerGroupNames: { g1: ['t1'] } }
    await service.call('registerConsumerGroup', joining)
    assert.equal((await refused())[2], 'group g1_dev has 1 members (a): stop these consumers first')
    await service.call('deRegister', { ...base, id })
    await remove()
    assert.deepEqual(await service.call('listGroups'), { groups: [] })
    assert.deepEqual((await viewTopic(service)).groups, [])
  })

  test('that is a copy for a sub-environment can go alone, and comes back when it is asked for', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    const { id } = await service.call('register', { ...base, name: 'a' })
    const joining = { ...base, consumerId: id, subEnv: 'dev', consumerGroupNames: { g1: ['t1'] } }
    await service.call('registerConsumerGroup', joining)
    await service.call('deRegister', { ...base, id })
    await remove({ groupName: 'g1_dev' })
    assert.deepEqual((await viewGroup(service)).copies, [])
    const { id: other } = await service.call('register', { ...base, name: 'b' })
    await service.call('registerConsumerGroup', { ...joining, consumerId: other })
    assert.deepEqual((await viewGroup(service)).copies, [{ groupName: 'g1_dev', subEnv: 'dev' }])
  })

  test('is not there when it is removed once more', async () => {
    await createGroup(service, 'g1', [])
    await remove()
    assert.deepEqual(await refused(), [404, 'not_found', 'there is no group g1'])
  })

  test('of the same name begins anew: no offset, no setting, no member is left', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await service.call('updateGroup', { maxConsumers: 1 }, g1)
    await publish(service, ['a'])
    await remove()
    const made = await service.call('createGroup', { name: 'g1' })
    assert.deepEqual(
      [made.maxConsumers, made.version, made.queues, made.subscriptions, made.members],
      [0, 1, [], [], []],
    )
    await service.call('subscribe', {}, { ...g1, topicName: 't1' })
    const consumerId = await join(service, 'g1', ['t1'])
    assert.equal((await firstQueue(service, consumerId)).offset, 1)
  })

  test('takes nothing from other groups of its topics', async () => {
    const { consumerId } = await consume(service, 2)
    await createGroup(service, 'g2', ['t1'])
    const before = await assignment(service, consumerId)
    await remove({ groupName: 'g2' })
    assert.deepEqual(await assignment(service, consumerId), before)
    assert.deepEqual((await viewTopic(service)).groups, ['g1'])
  })
})
