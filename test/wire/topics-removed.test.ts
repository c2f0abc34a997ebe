import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { checkpointTopic } from '../../core/log/checkpoint.ts'
import { tick } from '../../core/tick/tick.ts'
import { bodiesOf, refusal, viewTopic } from './operator.ts'
import { assignment, base, consume, createGroup, createTopic, firstQueue, join, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

const t1 = { topicName: 't1' }
const remove = (topicName = 't1') => service.call('removeTopic', undefined, { topicName })
const refused = (topicName = 't1') => refusal(service, 'removeTopic', undefined, { topicName })
const unsubscribe = (groupName = 'g1') => service.call('unsubscribe', undefined, { groupName, ...t1 })
const firstQueueOf = async (consumerId: number, groupName: string) => {
  const [queue] = (await assignment(service, consumerId, groupName)).queues
  assert.ok(queue)
  return queue
}
const failures = { topicName: 'g1_t1_fail' }

suite('a topic is not removed', () => {
  test('while groups subscribe to it, which are named', async () => {
    await createTopic(service, 't1')
    for (const name of ['g2', 'g1']) await createGroup(service, name, ['t1'])
    const reason = 'topic t1 is in use: end the subscriptions of its groups first: g1, g2'
    assert.deepEqual(await refused(), [409, 'conflict', reason])
    await unsubscribe('g1')
    assert.deepEqual((await refused())[0], 409)
    await unsubscribe('g2')
    assert.deepEqual(await remove(), { removed: 't1' })
  })

  test('while very many groups subscribe to it, of which the first are named', async () => {
    await createTopic(service, 't1')
    for (let i = 10; i < 22; i++) await createGroup(service, `g${i}`, ['t1'])
    const [, , message] = await refused()
    assert.match(String(message), /: g10, g11, g12, g13, g14, g15, g16, g17, g18, g19, … \(12\)$/)
  })

  test('while it is the fail topic of a subscription', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    const [status, , message] = await refused(failures.topicName)
    assert.equal(status, 409)
    assert.match(String(message), /it takes what group g1 fails to handle of topic t1; end that subscription first/)
  })

  test('where it is not there', async () => {
    for (const name of ['nothing', 'a b', '\ud800']) assert.equal((await refused(name))[0], 404)
    await createTopic(service, 't1')
    await remove()
    assert.equal((await refused())[0], 404)
  })

  test('and goes on as before where that was refused', async () => {
    const { consumerId } = await consume(service)
    assert.equal((await refused())[0], 409)
    await service.call('addQueues', { count: 1 }, t1)
    await createGroup(service, 'g2', ['t1'])
    await publish(service, ['a'], 1)
    assert.deepEqual(await bodiesOf(service, await firstQueue(service, consumerId)), ['a'])
  })
})

suite('a topic that was removed', () => {
  test('is gone, with all its queues', async () => {
    await createTopic(service, 't1', 1000)
    await createTopic(service, 't2')
    await remove()
    assert.deepEqual(await service.call('listTopics'), { topics: ['t2'], failTopics: [] })
    assert.equal((await service.send('getTopicView', undefined, t1)).status, 404)
    assert.equal((await service.send('addQueues', {}, t1)).status, 404)
    await service.call('createGroup', { name: 'g1' })
    assert.equal((await service.send('subscribe', {}, { groupName: 'g1', ...t1 })).status, 404)
    const { suc, msg } = await service.call('publish', { ...base, ...t1, msgs: [{ body: 'a' }] })
    assert.deepEqual([suc, msg], [false, 'topic_t1_is_not_exist!'])
  })

  test('leaves its name alone for a minute', async () => {
    await createTopic(service, 't1')
    await remove()
    service.clock.advance(59_999)
    const [status, code, message] = await refusal(service, 'createTopic', { name: 't1' })
    assert.deepEqual([status, code], [409, 'conflict'])
    assert.match(String(message), /was removed just now: one of its name can be made a minute later/)
    service.clock.advance(1)
    await createTopic(service, 't1')
  })

  test('has nothing to do with another one of its name', async () => {
    const [former] = await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await publish(service, ['of the former'])
    await unsubscribe()
    await remove()
    service.clock.advance(60_000)
    const [queueId] = await createTopic(service, 't1')
    assert.notEqual(queueId, former)
    await createGroup(service, 'g2', ['t1'])
    await publish(service, ['of the later'])
    const consumerId = await join(service, 'g2', ['t1'])
    assert.deepEqual(await bodiesOf(service, await firstQueueOf(consumerId, 'g2')), ['of the later'])
    const { queues } = await viewTopic(service)
    assert.deepEqual(
      queues.map(({ nextOffset }) => nextOffset),
      [2],
    )
  })

  test('lets its group subscribe to another one of its name, from its beginning to now', async () => {
    await consume(service, 2)
    await publish(service, ['a', 'b'], 1)
    await unsubscribe()
    await remove()
    service.clock.advance(60_000)
    await createTopic(service, 't1')
    const { queues } = await service.call('subscribe', {}, { groupName: 'g1', ...t1 })
    assert.deepEqual(
      queues.filter(({ topicName }) => topicName === 't1').map(({ offset, lag }) => [offset, lag]),
      [[0, 0]],
    )
  })

  test('takes what is published by who still remembers it, and keeps it from a later one', async () => {
    await createTopic(service, 't1')
    const other = openService({ store: { ...service.core.store, close: async () => {} } })
    await publish(other, ['a'])
    await remove()
    // Within two seconds it is still what this container remembers; nobody is subscribed who could miss it.
    await publish(other, ['b'])
    other.clock.advance(60_000)
    service.clock.advance(60_000)
    await createTopic(service, 't1')
    assert.deepEqual(
      (await viewTopic(service)).queues.map(({ nextOffset }) => nextOffset),
      [1],
    )
    await publish(other, ['c'])
    assert.deepEqual(
      (await viewTopic(service)).queues.map(({ nextOffset }) => nextOffset),
      [2],
    )
    await other.close()
  })
})

suite('the fail topic of a subscription that ended', () => {
  const names = async () => (await service.call('listTopics')).failTopics

  test('stays for what is in it, also when the topic is gone', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await unsubscribe()
    await remove()
    assert.deepEqual(await names(), ['g1_t1_fail'])
  })

  test('is removed by its name', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await unsubscribe()
    await remove(failures.topicName)
    assert.deepEqual(await names(), [])
    const [status, , message] = await refusal(service, 'subscribe', {}, { groupName: 'g1', ...t1 })
    assert.equal(status, 409)
    assert.match(String(message), /g1_t1_fail was removed just now/)
    service.clock.advance(60_000)
    await service.call('subscribe', {}, { groupName: 'g1', ...t1 })
    assert.deepEqual(await names(), ['g1_t1_fail'])
  })

  /** So many hours, each with its tick. */
  async function passHours(hours: number) {
    for (let minute = 0; minute < 60; minute++) {
      service.clock.advance(hours * 60_000)
      assert.deepEqual((await tick(service.core)).failed, [])
    }
  }

  test('goes when nothing is in it that is not past retention', async () => {
    await createTopic(service, 't1')
    for (const name of ['g1', 'g2']) await createGroup(service, name, ['t1'])
    const { queues } = await viewTopic(service, failures.topicName)
    const batch = {
      queueId: queues[0]?.queueId ?? 0,
      base: 1,
      count: 1,
      publishId: 'p',
      codec: 0,
      bytes: Buffer.from('[{"body":""}]'),
    } as const
    const nowMs = service.clock.now()
    await service.core.store.appendBatch({ ...batch, appendedAtMs: nowMs, expiresAtMs: nowMs + 3 * 86_400_000 })
    await checkpointTopic(service.core, failures.topicName)
    await unsubscribe()
    service.clock.advance(2 * 86_400_000)
    await passHours(1)
    assert.deepEqual(await names(), ['g1_t1_fail', 'g2_t1_fail'])
    service.clock.advance(86_400_000)
    await passHours(1)
    assert.deepEqual(await names(), ['g2_t1_fail'])
  })

  test('does not go within a day after it was made: its subscription may be on its way', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    await unsubscribe()
    await passHours(1)
    assert.deepEqual(await names(), ['g1_t1_fail'])
    service.clock.advance(86_400_000)
    await passHours(1)
    assert.deepEqual(await names(), [])
  })
})
