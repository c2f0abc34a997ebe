import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { bodiesOf, commit, viewGroup, viewTopic } from './operator.ts'
import { assignment, base, createGroup, createTopic, publish, register } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(async () => {
  service = openService({ settings: { subEnvironments: true } })
  await createTopic(service, 't1', 2)
  await createGroup(service, 'g1', ['t1'])
})
afterEach(() => service.close())

const asks = (consumerId: number, subEnv: string | undefined, groupName = 'g1', of = service) =>
  of.call('registerConsumerGroup', { ...base, consumerId, subEnv, consumerGroupNames: { [groupName]: ['t1'] } })

/** Registers a consumer in a sub-environment; answers with its id and what the group is called for it. */
async function joins(name: string, subEnv?: string, groupName = 'g1') {
  const id = await register(service, name)
  const { suc, msg, consumerGroupNameNew, broadcastConsumerGroupName } = await asks(id, subEnv, groupName)
  assert.equal(suc, true, msg)
  assert.deepEqual(broadcastConsumerGroupName, consumerGroupNameNew)
  return { id, groupName: consumerGroupNameNew?.[groupName] ?? groupName }
}

/** What a poll tells of sub-environments. */
async function mapOf(id: number, groupName: string) {
  const request = { ...base, consumerId: id, consumerGroupVersion: { [groupName]: 0 } }
  return (await service.call('getConsumerGroupPolling', request)).consumerGroupSubEnvMap
}

describe('a consumer in a sub-environment', () => {
  test('has a copy of the group, which is named after it in lower case', async () => {
    assert.equal((await joins('a', 'Dev-1')).groupName, 'g1_dev-1')
    const { name, origin, members } = await viewGroup(service, 'g1_dev-1')
    assert.deepEqual([name, origin], ['g1_dev-1', { groupName: 'g1', subEnv: 'dev-1' }])
    assert.equal(members.length, 1)
    assert.deepEqual((await viewGroup(service)).copies, [{ groupName: 'g1_dev-1', subEnv: 'dev-1' }])
    assert.deepEqual((await viewGroup(service)).members, [])
  })

  test('has the queues to itself, from when the copy was made', async () => {
    await publish(service, ['before'], 1)
    const { id, groupName } = await joins('a', 'dev')
    const other = await joins('b')
    await publish(service, ['after'], 1)
    const { queues } = await assignment(service, id, groupName)
    assert.deepEqual(
      queues.map(queue => queue.consumerGroupName),
      [groupName, groupName],
    )
    const [queue] = queues
    assert.ok(queue)
    assert.deepEqual(await bodiesOf(service, queue), ['after'])
    assert.equal(await commit(service, queue, 2), 'advanced')
    const [ofOther] = (await assignment(service, other.id)).queues
    assert.ok(ofOther)
    assert.deepEqual([ofOther.offset, await bodiesOf(service, ofOther)], [0, ['before', 'after']])
  })

  test('shares them with the others that are there', async () => {
    const first = await joins('a', 'dev')
    const second = await joins('b', 'DEV')
    assert.equal(second.groupName, first.groupName)
    const held = await assignment(service, first.id, first.groupName)
    assert.equal(held.queues.length, 1)
    assert.deepEqual(await service.call('listGroups'), { groups: ['g1', 'g1_dev'] })
  })

  test('goes on where the last one was, when nobody was there meanwhile', async () => {
    const first = await joins('a', 'dev')
    await publish(service, ['one', 'two'], 1)
    const [queue] = (await assignment(service, first.id, first.groupName)).queues
    assert.ok(queue)
    await commit(service, queue, 1, 1)
    await service.call('deRegister', { ...base, id: first.id })
    const second = await joins('b', 'dev')
    const [again] = (await assignment(service, second.id, second.groupName)).queues
    assert.ok(again)
    assert.deepEqual(await bodiesOf(service, again), ['two'])
  })

  for (const subEnv of ['default', 'DEFAULT', '', undefined]) {
    test(`is in none where it says ${JSON.stringify(subEnv)}`, async () => {
      assert.equal((await joins('a', subEnv)).groupName, 'g1')
      assert.deepEqual((await viewGroup(service)).copies, [])
    })
  }

  test('is heard of in heartbeats by the name of the copy', async () => {
    const { id, groupName } = await joins('a', 'dev')
    const { versions } = await service.call('heartbeat', { ...base, consumerId: id, asyn: 0 })
    assert.deepEqual(Object.keys(versions ?? {}), [groupName])
  })

  test('of a broadcast group has all that is sent, by a name of its own', async () => {
    await service.call('createGroup', { name: 'g2', mode: 'broadcast' })
    await service.call('subscribe', {}, { groupName: 'g2', topicName: 't1' })
    const [a, b] = [await joins('a', 'dev', 'g2'), await joins('b', 'dev', 'g2')]
    assert.deepEqual([a.groupName, b.groupName], [`g2_dev~${a.id}`, `g2_dev~${b.id}`])
    await publish(service, ['x'], 1)
    for (const { id, groupName } of [a, b]) {
      const [queue] = (await assignment(service, id, groupName)).queues
      assert.ok(queue)
      assert.deepEqual(await bodiesOf(service, queue), ['x'])
      assert.deepEqual(await mapOf(id, groupName), { g2: ['dev'] })
    }
    await service.call('subscribe', { threadSize: 9 }, { groupName: 'g2', topicName: 't1' })
    assert.equal((await assignment(service, a.id, a.groupName)).queues[0]?.threadSize, 9)
    for (const { id } of [a, b]) await service.call('deRegister', { ...base, id })
    await service.call('removeGroup', undefined, { groupName: 'g2' })
    assert.deepEqual(await service.call('listGroups'), { groups: ['g1'] })
  })
})

describe("a sub-environment's copy of a group", () => {
  test('subscribes to what the group subscribes to, with its settings, and follows it', async () => {
    const { id, groupName } = await joins('a', 'dev')
    await createTopic(service, 't2')
    await service.call('subscribe', { threadSize: 9 }, { groupName: 'g1', topicName: 't2' })
    await service.call('subscribe', { threadSize: 8 }, { groupName: 'g1', topicName: 't1' })
    const threads = async () =>
      (await viewGroup(service, groupName)).subscriptions.map(({ topicName, threadSize }) => [topicName, threadSize])
    assert.deepEqual(await threads(), [
      ['t1', 8],
      ['t2', 9],
    ])
    await service.call('unsubscribe', undefined, { groupName: 'g1', topicName: 't1' })
    assert.deepEqual(await threads(), [['t2', 9]])
    assert.deepEqual((await viewTopic(service)).groups, [])
    assert.deepEqual((await assignment(service, id, groupName)).queues, [])
  })

  test('is not subscribed or unsubscribed by itself', async () => {
    await joins('a', 'dev')
    const parameters = { groupName: 'g1_dev', topicName: 't1' }
    for (const endpoint of ['subscribe', 'unsubscribe'] as const) {
      const { status, json } = await service.send(endpoint, {}, parameters)
      assert.deepEqual([status, json.message], [409, "group g1_dev is a copy of g1: change that one's subscriptions"])
    }
  })

  test('gets the queues that the topic is given, from their first message on', async () => {
    const { id, groupName } = await joins('a', 'dev')
    const { queues } = await service.call('addQueues', { count: 1 }, { topicName: 't1' })
    const added = queues.at(-1)?.queueId ?? 0
    await publish(service, ['first'], added)
    const queue = (await assignment(service, id, groupName)).queues.find(({ queueId }) => queueId === added)
    assert.ok(queue)
    assert.deepEqual(await bodiesOf(service, queue), ['first'])
  })

  test('has settings of its own for who may consume, at first those of the group', async () => {
    await service.call('updateGroup', { maxConsumers: 3 }, { groupName: 'g1' })
    await joins('a', 'dev')
    assert.equal((await viewGroup(service, 'g1_dev')).maxConsumers, 3)
    await service.call('updateGroup', { maxConsumers: 1 }, { groupName: 'g1_dev' })
    await joins('b', 'dev')
    const { members } = await viewGroup(service, 'g1_dev')
    assert.deepEqual(
      members.map(member => member.isStandby),
      [false, true],
    )
    assert.equal((await viewGroup(service)).maxConsumers, 3)
  })
})

describe('the sub-environments of a group, as polls tell them', () => {
  test('are those that have consumers, the default one among them, under the name of the group', async () => {
    const dev = await joins('a', 'dev')
    assert.deepEqual(await mapOf(dev.id, dev.groupName), { g1: ['dev'] })
    const none = await joins('b')
    const test = await joins('c', 'test')
    service.clock.advance(1_000)
    for (const { id, groupName } of [dev, none, test]) {
      assert.deepEqual(await mapOf(id, groupName), { g1: ['default', 'dev', 'test'] })
    }
    await service.call('deRegister', { ...base, id: dev.id })
    service.clock.advance(1_000)
    assert.deepEqual(await mapOf(none.id, 'g1'), { g1: ['default', 'test'] })
  })

  test('are told also by an answer that brings nothing else', async () => {
    const { id } = await joins('a')
    const { version } = await assignment(service, id)
    const request = { ...base, consumerId: id, consumerGroupVersion: { g1: version }, waitMs: 0 }
    const { consumerGroups, consumerGroupSubEnvMap } = await service.call('getConsumerGroupPolling', request)
    assert.deepEqual([consumerGroups, consumerGroupSubEnvMap], [undefined, { g1: ['default'] }])
  })
})

describe('a sub-environment is refused', () => {
  const refused = async (subEnv: string, groupName = 'g1') => {
    const { suc, msg } = await asks(await register(service, 'a'), subEnv, groupName)
    assert.equal(suc, false)
    return msg
  }

  test('whose copy would have the name of another group', async () => {
    await createGroup(service, 'g1_dev', [])
    assert.equal(await refused('dev'), 'there is a group g1_dev already, which is no copy of g1')
    assert.deepEqual((await viewGroup(service, 'g1_dev')).members, [])
  })

  test('whose copy would have the name of the copy of another group', async () => {
    await createGroup(service, 'g1_a', ['t1'])
    await joins('b', 'b', 'g1_a')
    assert.equal(await refused('a_b'), 'there is a group g1_a_b already, which is no copy of g1')
  })

  for (const subEnv of ['a b', 'ä', '#', '__proto__ ', '\ud800', 'x'.repeat(250)]) {
    test(`whose name no group could have: ${JSON.stringify(subEnv.slice(0, 10))}`, async () => {
      const copy = `g1_${subEnv.toLowerCase()}`
      assert.equal(await refused(subEnv), `sub-environment ${subEnv}: ${copy} cannot be the name of a group`)
    })
  }

  test('whose name might be that of what one consumer has of a broadcast group', async () => {
    assert.equal(
      await refused('dev~1'),
      "sub-environment dev~1: names with a tilde are kept for consumers' copies of broadcast groups",
    )
  })

  test('and then the consumer has joined nothing', async () => {
    await createGroup(service, 'g1_dev', [])
    await refused('dev')
    assert.deepEqual((await viewGroup(service)).members, [])
    assert.deepEqual((await viewGroup(service)).copies, [])
  })

  test('by a group that is made later by hand: its name is taken', async () => {
    await joins('a', 'dev')
    const { status } = await service.send('createGroup', { name: 'g1_dev' })
    assert.equal(status, 409)
  })
})

describe('where there are no sub-environments', () => {
  test('what a consumer says of its own is not heard, and polls do not speak of them', async () => {
    const plain = openService()
    await createTopic(plain, 't1')
    await createGroup(plain, 'g1', ['t1'])
    const id = await register(plain)
    const { consumerGroupNameNew } = await asks(id, 'dev', 'g1', plain)
    assert.deepEqual(consumerGroupNameNew, {})
    const { queues } = await assignment(plain, id)
    assert.equal(queues.length, 1)
    const request = { ...base, consumerId: id, consumerGroupVersion: { g1: 0 } }
    assert.ok(!('consumerGroupSubEnvMap' in (await plain.call('getConsumerGroupPolling', request))))
    await plain.close()
  })
})
