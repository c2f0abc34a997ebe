import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { bodiesOf, commit, refusal, viewGroup, viewTopic } from './operator.ts'
import { assignment, base, createTopic, join, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(async () => {
  service = openService()
  await createTopic(service, 't1', 2)
  await service.call('createGroup', { name: 'g1', mode: 'broadcast' })
  await service.call('subscribe', {}, { groupName: 'g1', topicName: 't1' })
})
afterEach(() => service.close())

const g1 = { groupName: 'g1' }
const nameOf = (consumerId: number) => `g1~${consumerId}`
const assigned = (consumerId: number) => assignment(service, consumerId, nameOf(consumerId))

/** The consumer's queues, which are both queues of `t1`. */
async function queuesOf(consumerId: number): Promise<[AssignedQueue, AssignedQueue]> {
  const [first, second] = (await assigned(consumerId)).queues
  assert.ok(first && second)
  return [first, second]
}
const recordOf = (consumerId: number) => service.core.store.readGroup(nameOf(consumerId))

describe('a broadcast group', () => {
  test('is listed and shown under its own name, and no other', async () => {
    await join(service, 'g1', ['t1'], 'a')
    await join(service, 'g1', ['t1'], 'b')
    assert.deepEqual(await service.call('listGroups'), { groups: ['g1'] })
    assert.deepEqual((await viewTopic(service)).groups, ['g1'])
    assert.deepEqual(await service.call('listTopics'), { topics: ['t1'], failTopics: [] })
    const { copies, members, queues, unhandledTopics } = await viewGroup(service)
    assert.deepEqual([copies, members.length, unhandledTopics], [[], 2, []])
    assert.deepEqual(queues.map(({ queueId, consumerName }) => `${queueId}${consumerName}`).sort(), [
      '1a',
      '1b',
      '2a',
      '2b',
    ])
  })

  test('passes a change of settings on to its members while they run', async () => {
    const id = await join(service, 'g1', ['t1'], 'a')
    const before = await assigned(id)
    await service.call('subscribe', { threadSize: 9 }, { ...g1, topicName: 't1' })
    const after = await assigned(id)
    assert.ok(after.version > before.version)
    assert.deepEqual(
      after.queues.map(queue => [queue.threadSize, queue.offsetVersion]),
      before.queues.map(queue => [9, queue.offsetVersion]),
    )
  })

  test('passes a new subscription on, which begins at now for each member', async () => {
    const id = await join(service, 'g1', ['t1', 't2'], 'a')
    await createTopic(service, 't2')
    const before = await recordOf(id)
    await service.call('subscribe', {}, { ...g1, topicName: 't2' })
    const after = await recordOf(id)
    assert.ok((after?.group.rbVersion ?? 0) > (before?.group.rbVersion ?? 0))
    assert.deepEqual(
      (await assigned(id)).queues.map(queue => queue.topicName),
      ['t1', 't1', 't2'],
    )
  })

  test('passes the end of a subscription on: nobody has its queues, and nothing of them is left', async () => {
    const id = await join(service, 'g1', ['t1'], 'a')
    const before = await recordOf(id)
    await service.call('unsubscribe', undefined, { ...g1, topicName: 't1' })
    const after = await recordOf(id)
    assert.ok((after?.group.rbVersion ?? 0) > (before?.group.rbVersion ?? 0))
    assert.deepEqual([after?.offsets, after?.subscriptions], [[], []])
    assert.deepEqual((await assigned(id)).queues, [])
  })

  test('is reset as a whole: every member goes on from there, and what it has in hand is fenced', async () => {
    const ids = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    await publish(service, ['a', 'b'], 1)
    const before = await Promise.all(ids.map(queuesOf))
    for (const [queue] of before) await commit(service, queue, 2)
    const { queues } = await service.call('resetOffsets', { of: { queueId: 1 }, to: 'start' }, g1)
    assert.deepEqual(
      queues.map(({ from, to, repeats }) => [from, to, repeats]),
      [
        [2, 0, 2],
        [2, 0, 2],
      ],
    )
    for (const [i, id] of ids.entries()) {
      const [queue] = await queuesOf(id)
      const old = before[i]?.[0]
      assert.ok(old)
      assert.deepEqual([queue.offset, queue.offsetVersion], [0, old.offsetVersion + 1])
      assert.equal(await commit(service, old, 2), 'fenced')
      assert.deepEqual(await bodiesOf(service, queue), ['a', 'b'])
    }
  })

  test('gives nothing to a member on standby, who goes on where it was when it is let in again', async () => {
    const [id, other] = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    const [held] = await queuesOf(other)
    const { members } = await service.call('updateGroup', { maxConsumers: 1 }, g1)
    assert.deepEqual(
      members.map(member => member.isStandby),
      [false, true],
    )
    assert.deepEqual([(await queuesOf(id)).length, (await assigned(other)).queues], [2, []])
    assert.equal(await commit(service, held, 0), 'fenced')
    await publish(service, ['a'], 1)
    const late = await join(service, 'g1', ['t1'], 'c')
    assert.deepEqual((await assigned(late)).queues, [])
    await service.call('updateGroup', { maxConsumers: 0 }, g1)
    assert.deepEqual(await bodiesOf(service, (await queuesOf(other))[0]), ['a'])
    assert.equal((await queuesOf(late)).length, 2)
  })

  test('gives nothing to a member whose address is denied', async () => {
    await service.call('updateGroup', { deniedIps: ['10.1.0.0/16'] }, g1)
    const id = await join(service, 'g1', ['t1'], 'a')
    assert.deepEqual((await assigned(id)).queues, [])
    await service.call('updateGroup', { deniedIps: [] }, g1)
    assert.equal((await queuesOf(id)).length, 2)
  })

  test('is stopped and started as a whole', async () => {
    const ids = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    const flags = async () => {
      const assignments = await Promise.all(ids.map(queuesOf))
      return assignments.map(queues => queues.map(queue => queue.stopFlag).join(''))
    }
    const versions = await Promise.all(ids.map(async id => (await assigned(id)).version))
    await service.call('stopQueues', { of: { queueId: 2 } }, g1)
    assert.deepEqual(await flags(), ['01', '01'])
    for (const [i, id] of ids.entries()) assert.ok((await assigned(id)).version > (versions[i] ?? 0))
    await service.call('startQueues', { of: 'all' }, g1)
    assert.deepEqual(await flags(), ['00', '00'])
  })

  test('has nothing to reset or to stop while nobody is there', async () => {
    const { queues } = await service.call('resetOffsets', { of: 'all', to: 'end' }, g1)
    assert.deepEqual(queues, [])
    assert.equal((await refusal(service, 'stopQueues', { of: { queueId: 1 } }, g1))[0], 404)
  })

  test('is not removed while it has members, and then as a whole', async () => {
    const id = await join(service, 'g1', ['t1'], 'a')
    assert.deepEqual(await refusal(service, 'removeGroup', undefined, g1), [
      409,
      'conflict',
      'group g1 has 1 members (a): stop these consumers first',
    ])
    await service.call('deRegister', { ...base, id })
    await service.call('removeGroup', undefined, g1)
    assert.deepEqual((await viewTopic(service)).groups, [])
  })

  test('does not keep a topic that nobody listens to from losing a queue', async () => {
    await publish(service, ['a'], 1)
    await service.call('changeQueue', { readOnly: true }, { topicName: 't1', queueId: '1' })
    service.clock.advance(60_000)
    await service.call('removeQueue', undefined, { topicName: 't1', queueId: '1' })
    const id = await join(service, 'g1', ['t1'], 'a')
    assert.deepEqual(
      (await assigned(id)).queues.map(queue => queue.queueId),
      [2],
    )
  })
})

describe('what one consumer has of a broadcast group', () => {
  test('can be looked at, reset and stopped by its name', async () => {
    const [id, other] = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    const { name, origin, queues } = await viewGroup(service, nameOf(id))
    assert.deepEqual([name, origin, queues.length], [nameOf(id), { groupName: 'g1', consumerId: id }, 2])
    await service.call('stopQueues', { of: 'all' }, { groupName: nameOf(id) })
    assert.deepEqual(
      (await Promise.all([id, other].map(queuesOf))).map(([queue]) => queue.stopFlag),
      [1, 0],
    )
  })

  test('is not changed or removed by that name: it is as the group is, and goes with the consumer', async () => {
    const id = await join(service, 'g1', ['t1'], 'a')
    const copy = { groupName: nameOf(id) }
    const conflict = [409, 'conflict', `group g1~${id} is what consumer ${id} has of group g1: change that one`]
    assert.deepEqual(await refusal(service, 'removeGroup', undefined, copy), conflict)
    assert.deepEqual(await refusal(service, 'updateGroup', { maxConsumers: 1 }, copy), conflict)
    const itsTopic = { ...copy, topicName: 't1' }
    const subscription = [409, 'conflict', `group g1~${id} is a copy of g1: change that one's subscriptions`]
    assert.deepEqual(await refusal(service, 'subscribe', {}, itsTopic), subscription)
    assert.deepEqual(await refusal(service, 'unsubscribe', undefined, itsTopic), subscription)
    assert.equal((await queuesOf(id)).length, 2)
  })

  test('has a name that no group can be given by hand', async () => {
    const [status] = await refusal(service, 'createGroup', { name: 'g1~1' })
    assert.equal(status, 400)
  })
})
