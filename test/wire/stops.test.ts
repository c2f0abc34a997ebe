import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { addQueues, bodiesOf, commit, ordinary, refusal, viewGroup } from './operator.ts'
import { assignment, base, consume, createGroup, createTopic, join, publish } from './scene.ts'
import { openService, type Service, turn } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

const g1 = { groupName: 'g1' }
const stop = (of: unknown) => service.call('stopQueues', { of }, g1)
const start = (of: unknown) => service.call('startQueues', { of }, g1)
const stopped = async () => (await viewGroup(service)).queues.filter(queue => queue.isStopped).map(q => q.queueId)

/** As many rebalances as it takes for every queue to have moved, and back: a consumer comes, the older one goes. */
async function rebalanceOften(consumerId: number): Promise<number> {
  let present = consumerId
  for (let n = 0; n < 5; n++) {
    const next = await join(service, 'g1', ['t1', 't2'], `next-${n}`)
    await service.call('deRegister', { ...base, id: present })
    present = next
  }
  return present
}

/** A consumer of a group with two topics, the first of two queues, the second of one. */
async function consumeTwo(): Promise<number> {
  await createTopic(service, 't1', 2)
  await createTopic(service, 't2', 1)
  await createGroup(service, 'g1', ['t1', 't2'])
  return join(service, 'g1', ['t1', 't2'])
}

describe('queues of a group that are stopped', () => {
  const selections: [string, unknown, number[]][] = [
    ['one queue', { queueId: 2 }, [2]],
    ['those of a topic', { topicName: 't1' }, [1, 2]],
    ['all', 'all', [1, 2, 3]],
  ]
  for (const [what, of, expected] of selections) {
    test(`are those that are meant: ${what}`, async () => {
      const consumerId = await consumeTwo()
      const { queues } = await stop(of)
      assert.deepEqual(
        ordinary(queues)
          .filter(queue => queue.isStopped)
          .map(queue => queue.queueId),
        expected,
      )
      const told = (await assignment(service, consumerId)).queues.filter(queue => queue.stopFlag === 1)
      assert.deepEqual(
        told.map(queue => queue.queueId),
        expected,
      )
    })

    test(`stay so over five rebalances, and start again for whoever has them then: ${what}`, async () => {
      const first = await consumeTwo()
      await stop(of)
      const consumerId = await rebalanceOften(first)
      assert.deepEqual(await stopped(), expected)
      await start(of)
      const { queues } = await assignment(service, consumerId)
      assert.deepEqual(
        queues.map(queue => queue.stopFlag),
        [0, 0, 0],
      )
    })
  }

  test('are told of by metaVersion, in a poll that waits and in heartbeats; rbVersion stays', async () => {
    const consumerId = await consumeTwo()
    const { version } = await assignment(service, consumerId)
    const before = await viewGroup(service)
    const waiting = service.call('getConsumerGroupPolling', {
      ...base,
      consumerId,
      consumerGroupVersion: { g1: version },
    })
    await turn()
    await stop({ queueId: 1 })
    assert.equal((await service.pass(waiting)).consumerGroups?.g1?.queues[1]?.stopFlag, 1)
    const after = await viewGroup(service)
    assert.deepEqual([after.rbVersion, after.metaVersion > before.metaVersion], [before.rbVersion, true])
    const { versions } = await service.call('heartbeat', { ...base, consumerId, asyn: 0 })
    assert.deepEqual(versions, { g1: after.version })
  })

  test('keep their owner and offsetVersion: what is in hand may be finished and committed', async () => {
    const { consumerId } = await consume(service)
    await publish(service, ['a'])
    const [before] = (await assignment(service, consumerId)).queues
    await stop('all')
    const [after] = (await assignment(service, consumerId)).queues
    assert.ok(before && after)
    assert.equal(after.offsetVersion, before.offsetVersion)
    assert.equal(await commit(service, before, 1), 'advanced')
  })

  test('lose nothing that is published meanwhile, to a group that nobody is in either', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await stop('all')
    await publish(service, ['a', 'b'])
    await start('all')
    const consumerId = await join(service, 'g1', ['t1'])
    const [queue] = (await assignment(service, consumerId)).queues
    assert.ok(queue)
    assert.deepEqual([queue.stopFlag, await bodiesOf(service, queue)], [0, ['a', 'b']])
  })

  test('do not count as stalled, however long they have waited', async () => {
    await consume(service)
    await publish(service, ['a'])
    await stop('all')
    service.clock.advance(120_000)
    const { queues } = await viewGroup(service)
    assert.deepEqual([queues[0]?.lag, queues[0]?.isStalled], [1, false])
  })

  test('may be stopped and started twice: the second time changes nothing but versions', async () => {
    await consumeTwo()
    for (const change of [stop, stop]) await change({ queueId: 1 })
    assert.deepEqual(await stopped(), [1])
    for (const change of [start, start]) await change({ queueId: 1 })
    assert.deepEqual(await stopped(), [])
  })

  test('do not stop those that come later', async () => {
    const { consumerId } = await consume(service)
    await stop('all')
    const [added] = await addQueues(service)
    const { queues } = await assignment(service, consumerId)
    assert.deepEqual(
      queues.map(({ queueId, stopFlag }) => [queueId, stopFlag]),
      [
        [1, 1],
        [added, 0],
      ],
    )
  })

  test('cannot be claimed; who has claimed one is told with the next renewal', async () => {
    await createTopic(service, 't1')
    await service.call('createGroup', { name: 'g1', mode: 'claimed' })
    await service.call('subscribe', {}, { ...g1, topicName: 't1' })
    await publish(service, ['a'])
    const claim = () => service.call('claimQueues', { consumerGroupName: 'g1', claimant: 'a', leaseMs: 1_000 })
    const claimed = Object.values((await claim()).queues ?? {})
    await stop('all')
    const { results } = await service.call('renewClaims', { consumerGroupName: 'g1', queues: claimed, leaseMs: 1_000 })
    assert.deepEqual(
      results?.map(({ outcome, stopFlag }) => [outcome, stopFlag]),
      [['renewed', 1]],
    )
    service.clock.advance(1_000)
    assert.deepEqual((await claim()).queues, {})
    await start('all')
    assert.equal(Object.keys((await claim()).queues ?? {}).length, 1)
  })

  test('have to be named', async () => {
    await consume(service)
    const statuses = async (endpoint: 'stopQueues' | 'startQueues') => {
      const asked = [{}, { of: {} }, { of: { queueId: 9 } }, { of: { topicName: 't2' } }, { of: 'none' }]
      const answers = asked.map(async request => (await refusal(service, endpoint, request, g1))[0])
      return Promise.all(answers)
    }
    assert.deepEqual(await statuses('stopQueues'), [400, 400, 404, 404, 400])
    assert.deepEqual(await statuses('startQueues'), [400, 400, 404, 404, 400])
    assert.equal((await refusal(service, 'stopQueues', { of: 'all' }, { groupName: 'g2' }))[0], 404)
  })
})
