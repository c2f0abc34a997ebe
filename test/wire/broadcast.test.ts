import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import { tick } from '../../core/tick/tick.ts'
import { openRegistry } from '../group/groups.ts'
import { bodiesOf, commit } from './operator.ts'
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

const nameOf = (consumerId: number) => `g1~${consumerId}`
const assigned = (consumerId: number) => assignment(service, consumerId, nameOf(consumerId))

/** The consumer's queues, which are both queues of `t1`. */
async function queuesOf(consumerId: number): Promise<[AssignedQueue, AssignedQueue]> {
  const [first, second] = (await assigned(consumerId)).queues
  assert.ok(first && second)
  return [first, second]
}
const recordOf = (consumerId: number) => service.core.store.readGroup(nameOf(consumerId))
const beat = (consumerId: number) => service.call('heartbeat', { ...base, consumerId, asyn: 0 })

describe('a consumer of a broadcast group', () => {
  test('is told a name that is the group for it alone', async () => {
    const { id } = await service.call('register', { ...base, name: 'a' })
    const { broadcastConsumerGroupName, consumerGroupNameNew } = await service.call('registerConsumerGroup', {
      ...base,
      consumerId: id,
      consumerGroupNames: { g1: ['t1'] },
    })
    assert.deepEqual(consumerGroupNameNew, { g1: nameOf(id ?? 0) })
    assert.deepEqual(broadcastConsumerGroupName, consumerGroupNameNew)
  })

  test('is given all queues at once, by that name, with an offset of its own', async () => {
    const ids = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    for (const id of ids) {
      const queues = await queuesOf(id)
      assert.deepEqual(
        queues.map(({ queueId, consumerGroupName, offset }) => [queueId, consumerGroupName, offset]),
        [1, 2].map(queueId => [queueId, nameOf(id), 0]),
      )
    }
  })

  test('gets every message from when it joined, and the others theirs', async () => {
    const early = await join(service, 'g1', ['t1'], 'a')
    await publish(service, ['first'], 1)
    const late = await join(service, 'g1', ['t1'], 'b')
    await publish(service, ['second'], 1)
    const [ofEarly] = await queuesOf(early)
    const [ofLate] = await queuesOf(late)
    assert.deepEqual(await bodiesOf(service, ofEarly), ['first', 'second'])
    assert.deepEqual(await bodiesOf(service, ofLate), ['second'])
  })

  test('commits for itself: the other ones stay where they are', async () => {
    const ids = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    await publish(service, ['first', 'second'], 1)
    const [queue] = await queuesOf(ids[0] ?? 0)
    assert.equal(await commit(service, queue, 2), 'advanced')
    const counts = ids.map(id => service.call('getMessageCount', { ...base, consumerGroupName: nameOf(id) }))
    assert.deepEqual(
      (await Promise.all(counts)).map(answer => answer.count),
      [0, 2],
    )
  })

  test('is given nothing of what is for another one', async () => {
    const [first, second] = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    assert.deepEqual((await assignment(service, first, nameOf(second))).queues, [])
  })

  test('is told of versions by its own name, by heartbeats, pulls and commits', async () => {
    const id = await join(service, 'g1', ['t1'], 'a')
    const { version } = await assigned(id)
    assert.deepEqual((await beat(id)).versions, { [nameOf(id)]: version })
    const [queue] = await queuesOf(id)
    const asked = { ...base, ...queue, offsetStart: 0, offsetEnd: 9 }
    assert.equal((await service.call('pullData', asked)).version, version)
    const committed = await service.call('commitOffset', { ...base, queueOffsets: [{ ...queue, offset: 0 }] })
    assert.deepEqual(committed.versions, { [nameOf(id)]: version })
  })

  test('may be on the same machine as another one', async () => {
    const ids = [await join(service, 'g1', ['t1'], 'm|1|1'), await join(service, 'g1', ['t1'], 'm|2|1')]
    await publish(service, ['a'], 2)
    for (const id of ids) assert.deepEqual(await bodiesOf(service, (await queuesOf(id))[1]), ['a'])
  })

  test('keeps its place when it joins once more', async () => {
    const id = await join(service, 'g1', ['t1'], 'a')
    await publish(service, ['first'], 1)
    const before = await assigned(id)
    assert.equal(await join(service, 'g1', ['t1'], 'a'), id)
    assert.deepEqual(await assigned(id), before)
  })

  test('keeps its queues whatever is asked to be rebalanced', async () => {
    const id = await join(service, 'g1', ['t1'], 'a')
    const before = await assigned(id)
    await service.call('rb', { ...base, consumerGroupNames: [nameOf(id), 'g1'] })
    await tick(service.core)
    assert.deepEqual(await assigned(id), before)
  })

  test('handles also none of the topics, and has their queues all the same', async () => {
    const id = await join(service, 'g1', [], 'a')
    assert.equal((await queuesOf(id)).length, 2)
  })

  test('is told that nothing can be claimed of it', async () => {
    const id = await join(service, 'g1', ['t1'], 'a')
    for (const consumerGroupName of ['g1', nameOf(id)]) {
      const { suc } = await service.call('claimQueues', { consumerGroupName, claimant: 'x' })
      assert.equal(suc, false)
    }
  })
})

describe('a consumer that has left a broadcast group', () => {
  const assertGone = async (consumerId: number) => {
    assert.equal(await recordOf(consumerId), undefined)
    const { copies = [], members = [] } = (await service.core.store.readGroup('g1')) ?? {}
    assert.ok(!copies.some(copy => copy.consumerId === consumerId))
    assert.ok(!members.some(member => member.consumerId === consumerId))
  }

  test('has left nothing behind, and what it sends is refused', async () => {
    const [id, other] = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    const [queue] = await queuesOf(id)
    await service.call('deRegister', { ...base, id })
    await assertGone(id)
    assert.equal(await commit(service, queue, 0, 1), 'unknown_queue')
    assert.equal((await queuesOf(other)).length, 2)
  })

  test('by its silence, has left nothing either', async () => {
    const [id, other] = [await join(service, 'g1', ['t1'], 'a'), await join(service, 'g1', ['t1'], 'b')]
    for (let beats = 0; beats < 5; beats++) {
      service.clock.advance(8_000)
      await beat(other)
    }
    assert.equal((await beat(id)).deleted, 1)
    await assertGone(id)
  })

  test('by its silence, and was the last one, has left nothing after some ticks', async () => {
    const id = await join(service, 'g1', ['t1'], 'a')
    for (let ticks = 0; ticks < 5; ticks++) {
      service.clock.advance(20_000)
      await tick(service.core)
    }
    await assertGone(id)
    assert.deepEqual(await service.core.store.listAwakeGroups(), [])
  })

  test('and comes back is another one, which begins at now', async () => {
    const id = await join(service, 'g1', ['t1'], 'a')
    await service.call('deRegister', { ...base, id })
    await publish(service, ['between'], 1)
    const again = await join(service, 'g1', ['t1'], 'a')
    assert.notEqual(again, id)
    assert.deepEqual(await bodiesOf(service, (await queuesOf(again))[0]), [])
  })
})

test('the registry is as before when all consumers of a broadcast group have left', async () => {
  const registry = openRegistry()
  const own = openService({ store: registry.store })
  await createTopic(own, 't1', 2)
  await own.call('createGroup', { name: 'g1', mode: 'broadcast' })
  await own.call('subscribe', {}, { groupName: 'g1', topicName: 't1' })
  const keys = (): string[] => JSON.parse(registry.dump()).map(([pk, sk]: string[]) => `${pk} ${sk}`)
  const before = keys()
  const ids = [await join(own, 'g1', ['t1'], 'a'), await join(own, 'g1', ['t1'], 'b')]
  for (const id of ids) await own.call('deRegister', { ...base, id })
  await tick(own.core)
  const left = keys().filter(key => !before.includes(key))
  assert.deepEqual(left, ['COUNTER#consumer COUNTER', 'COUNTER#queueOffset COUNTER'])
  await own.close()
})

describe('an unmodified Java client in a broadcast group', () => {
  test('registers, polls from version 0 on, waits, pulls, commits finally, and leaves', async () => {
    const me = { lan: 'java', sdkVersion: '5.5.1', clientIp: '10.1.1.1' }
    const { id = 0 } = await service.call('register', { ...me, name: '10.1.1.1|28959|5298|8087' })
    const joined = await service.call('registerConsumerGroup', {
      ...me,
      consumerId: id,
      consumerName: '10.1.1.1|28959|5298|8087',
      subEnv: 'default',
      consumerGroupNames: { g1: ['t1'] },
    })
    const name = joined.consumerGroupNameNew?.g1 ?? ''
    const poll = (version: number) =>
      service.pass(
        service.call('getConsumerGroupPolling', { ...me, consumerId: id, consumerGroupVersion: { [name]: version } }),
      )
    const { meta, queues } = (await poll(0)).consumerGroups?.[name] ?? {}
    assert.ok(meta && queues && meta.rbVersion > 0)
    // The barrier: three more answers that bring nothing.
    for (let polls = 0; polls < 3; polls++) assert.equal((await poll(meta.version)).consumerGroups, undefined)
    await publish(service, ['a', 'b'], 1)
    const [first] = Object.values(queues)
    assert.ok(first)
    assert.deepEqual(await bodiesOf(service, first), ['a', 'b'])
    assert.equal(await commit(service, first, 1), 'advanced')
    assert.equal(await commit(service, first, 2, 1), 'advanced')
    // Its queue stays, with another offsetVersion, by which it goes on where it was.
    const again = (await poll(meta.version)).consumerGroups?.[name]?.queues[1]
    assert.deepEqual([again?.offset, again?.offsetVersion], [2, first.offsetVersion + 1])
    await service.call('deRegister', { ...me, id })
    assert.equal(await service.core.store.readGroup(name), undefined)
  })
})
