import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { viewGroup } from './operator.ts'
import { assignment, base, consume, createGroup, join } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

const rb = (consumerGroupNames: unknown) => service.call('rb', { ...base, consumerGroupNames })

describe('rb', () => {
  test('has a rebalance done that is owed', async () => {
    const { consumerId } = await consume(service, 2)
    const other = await service.core.store.registerConsumer({
      consumerId: await service.core.store.takeIds('consumer', 1),
      name: 'other',
      ip: '10.1.1.2',
      sdkVersion: '5.5.1',
      lan: 'java',
      heartbeatAtMs: service.clock.now(),
      groupNames: [],
    })
    const member = { groupName: 'g1', consumerId: other, consumerName: 'other', ip: '10.1.1.2', topicNames: ['t1'] }
    await service.core.store.joinGroup({ ...member, joinedAtMs: service.clock.now() })
    assert.equal((await assignment(service, consumerId)).queues.length, 2)
    await rb(['g1'])
    assert.equal((await assignment(service, consumerId)).queues.length, 1)
  })

  test('changes nothing where none is owed, however often it is asked', async () => {
    const { consumerId } = await consume(service, 2)
    await join(service, 'g1', ['t1'], 'other')
    const before = await assignment(service, consumerId)
    for (let n = 0; n < 5; n++) await rb(['g1', 'g1'])
    assert.deepEqual(await assignment(service, consumerId), before)
  })

  test('succeeds for groups that are not there, and for none', async () => {
    await createGroup(service, 'g1', [])
    const { version } = await viewGroup(service)
    for (const names of [undefined, null, [], ['nobody', '', 'no name', '\ud800', '__proto__']]) {
      assert.equal((await rb(names)).suc, true)
    }
    assert.equal((await viewGroup(service)).version, version)
  })
})

describe('getIp', () => {
  test("tells the caller's address, as text", async () => {
    const { status, headers, text } = await service.send('getIp')
    assert.deepEqual([status, headers['content-type'], text], [200, 'text/plain; charset=utf-8', '10.0.0.7'])
  })
})

describe('getMetaGroup', () => {
  test('answers whatever it is sent, so that no list of hosts takes the place of the URL that the client has', async () => {
    for (const request of ['', 'null', '{}', '{"lan":null,"brokerIpG1":["http://other"]}']) {
      const { brokerMetaMode, groupFlag, metricUrl, ...rest } = await service.call('getMetaGroup', request)
      assert.deepEqual([brokerMetaMode, groupFlag, metricUrl], [-1, 0, ''])
      assert.ok(!('brokerIpG1' in rest) && !('brokerIpG2' in rest))
    }
  })
})
