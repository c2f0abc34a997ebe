import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { assignment, base, consume, createGroup, createTopic, firstQueue, join, publish, register } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

suite('register', () => {
  test('answers with an id above 0', async () => {
    assert.ok((await register(service)) > 0)
  })

  test('gives the same name the same id, and another name another', async () => {
    const first = await register(service, 'a')
    assert.equal(await register(service, 'a'), first)
    assert.notEqual(await register(service, 'b'), first)
  })

  test('gives one id to a name that registers several times at once', async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, () => register(service, 'a')))
    assert.equal(new Set(ids).size, 1)
  })

  test('takes a name that is no Unicode', async () => {
    assert.equal(await register(service, 'a\ud800'), 1)
  })

  const refusals: [string, string | object, string][] = [
    ['no body', '', 'ConsumerRegisterRequest不能为空！'],
    ['the body null', 'null', 'ConsumerRegisterRequest不能为空！'],
    ['no name', base, 'ConsumerName不能为空！'],
    ['an empty name', { ...base, name: '' }, 'ConsumerName不能为空！'],
    ['no clientIp', { name: 'a', sdkVersion: '5.5.1' }, 'Ip不能为空！'],
    ['no sdkVersion', { name: 'a', clientIp: '10.1.1.1' }, 'SdkVersion不能为空！'],
  ]
  for (const [what, request, msg] of refusals) {
    test(`refuses ${what}`, async () => {
      const answer = await service.call('register', request)
      assert.deepEqual([answer.suc, answer.msg, answer.id], [false, msg, undefined])
    })
  }
})

suite('registerConsumerGroup', () => {
  const joining = (consumerId: number, consumerGroupNames: object | null) =>
    service.call('registerConsumerGroup', { ...base, consumerId, consumerName: 'c', consumerGroupNames })

  test('joins, and renames no group', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    const { time, serverIp, ...answer } = await joining(await register(service), { g1: ['t1'] })
    assert.deepEqual(answer, { suc: true, broadcastConsumerGroupName: {}, consumerGroupNameNew: {} })
  })

  test('refuses a consumer that is not known', async () => {
    await createGroup(service, 'g1', [])
    assert.equal((await joining(4711, { g1: ['t1'] })).msg, 'ConsumerId_4711不存在！')
  })

  test('refuses the id 0 that a failed registration leaves a PMQ client with', async () => {
    await createGroup(service, 'g1', [])
    assert.equal((await joining(0, { g1: ['t1'] })).msg, 'ConsumerId_0不存在！')
  })

  test('names all groups when none of them exists', async () => {
    assert.equal((await joining(await register(service), { g1: [], g2: [] })).msg, 'g1.g2不存在')
  })

  test('names the first that does not exist when others do', async () => {
    await createGroup(service, 'g1', [])
    assert.equal((await joining(await register(service), { g1: [], g2: [] })).msg, 'consumergroup_g2不存在')
  })

  test('tells names that differ in case apart', async () => {
    await createGroup(service, 'g1', [])
    assert.equal((await joining(await register(service), { g1: [], G1: [] })).msg, 'consumergroup_G1不存在')
  })

  test('joins none of the groups when one of them does not exist', async () => {
    await createGroup(service, 'g1', [])
    await joining(await register(service), { g1: [], g2: [] })
    assert.deepEqual((await service.call('getGroup', undefined, { groupName: 'g1' })).members, [])
  })

  for (const [what, names] of [
    ['no map', null],
    ['an empty one', {}],
  ] as const) {
    test(`refuses ${what} of groups`, async () => {
      assert.equal((await joining(await register(service), names)).msg, '消费者组不能为空！')
    })
  }

  test('accepts topics that the group does not subscribe to', async () => {
    await createGroup(service, 'g1', [])
    assert.equal((await joining(await register(service), { g1: ['not-there'] })).suc, true)
  })

  test('accepts a group without topics: null is an empty list', async () => {
    await createGroup(service, 'g1', [])
    assert.equal((await joining(await register(service), { g1: null })).suc, true)
  })

  for (const groupName of ['__proto__', 'constructor', 'prototype', 'toString', '1']) {
    test(`joins a group of the name ${groupName}`, async () => {
      await createTopic(service, 't1')
      await createGroup(service, groupName, ['t1'])
      const consumerId = await register(service)
      const names = `{"${groupName}":["t1"]}`
      await service.call('registerConsumerGroup', `{"consumerId":${consumerId},"consumerGroupNames":${names}}`)
      const { members } = await service.call('getGroup', undefined, { groupName })
      assert.deepEqual(
        members.map(member => member.consumerId),
        [consumerId],
      )
    })
  }
})

suite('deRegister', () => {
  const leaving = (request: unknown) => service.call('deRegister', request)

  for (const [what, request] of [
    ['no body', ''],
    ['no id', base],
    ['the id null', { ...base, id: null }],
    ['the id 0', { ...base, id: 0 }],
  ] as const) {
    test(`refuses ${what}`, async () => {
      const { suc, msg } = await leaving(request)
      assert.deepEqual([suc, msg], [false, 'ConsumerDeRegisterRequest id 不能为空！'])
    })
  }

  test('succeeds for an id that is not known', async () => {
    assert.equal((await leaving({ ...base, id: 4711 })).suc, true)
  })

  test('gives the queues of the consumer to those that stay', async () => {
    const { consumerId } = await consume(service, 2)
    const other = await join(service, 'g1', ['t1'], 'other')
    await leaving({ ...base, id: consumerId })
    assert.equal((await assignment(service, other)).queues.length, 2)
  })

  test('fences what the consumer commits later', async () => {
    const { consumerId } = await consume(service)
    await publish(service, ['a'])
    const { queueOffsetId, offsetVersion } = await firstQueue(service, consumerId)
    await leaving({ ...base, id: consumerId })
    const entry = { queueOffsetId, offsetVersion, offset: 1, consumerGroupName: 'g1', topicName: 't1' }
    const { results } = await service.call('commitOffset', { ...base, queueOffsets: [entry], flag: 0 })
    assert.equal(results?.[0]?.outcome, 'fenced')
  })

  test('may be repeated', async () => {
    const id = await register(service)
    await leaving({ ...base, id })
    assert.equal((await leaving({ ...base, id })).suc, true)
  })
})

suite('heartbeat', () => {
  const beat = (request: object) => service.call('heartbeat', { ...base, ...request })

  /** Sends a consumer's heartbeats for a little longer than a session time-out. */
  const liveOn = async (consumerId: number) => {
    for (let beats = 0; beats < 4; beats++) {
      service.clock.advance(8_000)
      await beat({ consumerId, asyn: 0 })
    }
  }

  test("answers a consumer that is known, in PMQ's spelling", async () => {
    const { time, serverIp, ...answer } = await beat({ consumerId: await register(service), asyn: 0 })
    assert.deepEqual(answer, { suc: true, heatbeatTime: 10, deleted: 0, bakUrl: '', versions: {} })
  })

  test('tells a consumer that is not known to begin again', async () => {
    assert.equal((await beat({ consumerId: 4711, asyn: 0 })).deleted, 1)
  })

  test('tells a consumer that was expired to begin again', async () => {
    const { consumerId } = await consume(service)
    const other = await join(service, 'g1', ['t1'], 'other')
    await liveOn(other)
    // The other's own heartbeat counts before those that it looks at.
    assert.equal((await beat({ consumerId, asyn: 0 })).deleted, 1)
  })

  test('keeps a consumer alive', async () => {
    const { consumerId } = await consume(service)
    for (let beats = 0; beats < 10; beats++) {
      service.clock.advance(10_000)
      assert.equal((await beat({ consumerId })).deleted, 0)
    }
    assert.equal((await assignment(service, consumerId)).queues.length, 1)
  })

  test('gives the queues of a dead member to the living, without the tick', async () => {
    await consume(service, 2)
    const other = await join(service, 'g1', ['t1'], 'other')
    await liveOn(other)
    assert.equal((await assignment(service, other)).queues.length, 2)
  })

  test('takes several consumers at once', async () => {
    const consumerIds = [await register(service, 'a'), await register(service, 'b')]
    assert.equal((await beat({ consumerIds })).deleted, 0)
  })

  test('names the current version of each group of the consumer', async () => {
    const { consumerId } = await consume(service)
    const { version } = await assignment(service, consumerId)
    assert.deepEqual((await beat({ consumerId })).versions, { g1: version })
  })

  test('names the version of a group called __proto__', async () => {
    await createGroup(service, '__proto__', [])
    const consumerId = await register(service)
    const names = '{"__proto__":[]}'
    await service.call('registerConsumerGroup', `{"consumerId":${consumerId},"consumerGroupNames":${names}}`)
    const { versions } = await beat({ consumerId })
    assert.deepEqual(Object.keys(versions ?? {}), ['__proto__'])
  })

  test('accepts a request without a consumer', async () => {
    assert.equal((await beat({})).suc, true)
  })
})
