import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { changeQueue } from '../../core/admin/queues.ts'
import { createContainer, placeOf, send } from '../log/containers.ts'
import { bodiesOf, commit, refusal, setReadOnly, viewTopic } from './operator.ts'
import { assignment, base, consume, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

const another = () => createContainer(service.core.store, { clock: service.clock, settings: { topicCacheMs: 2_000 } })
const nextOffsets = async () => (await viewTopic(service)).queues.map(queue => queue.nextOffset)

describe('a queue that is read-only', () => {
  test('is shown so, with since when, and publishers are not told of it any more', async () => {
    await createTopic(service, 't1', 2)
    const sinceMs = service.clock.now()
    await setReadOnly(service, 1)
    service.clock.advance(5_000)
    // Once more, which changes nothing.
    const { queues } = await setReadOnly(service, 1)
    assert.deepEqual(queues, [
      { queueId: 1, readOnly: true, readOnlySinceMs: sinceMs, nextOffset: 1 },
      { queueId: 2, readOnly: false, nextOffset: 1 },
    ])
    const { topicQueues } = await service.call('getTopicQueueIds', { ...base, topicNames: ['t1'] })
    assert.deepEqual(topicQueues, { t1: [2] })
  })

  test('gets nothing any more: not by turns, not by key, not by name', async () => {
    await createTopic(service, 't1', 2)
    await setReadOnly(service, 1)
    for (let n = 0; n < 10; n++) {
      await publish(service, ['unkeyed'])
      const keyed = { ...base, topicName: 't1', msgs: [{ body: 'keyed', key: `key-${n}` }] }
      assert.equal((await service.call('publish', keyed)).suc, true)
    }
    assert.deepEqual(await nextOffsets(), [1, 21])
  })

  test('refuses a message that is strictly for it, and lets another go elsewhere', async () => {
    await createTopic(service, 't1', 2)
    await setReadOnly(service, 1)
    const to = (strictMode?: number) => ({
      body: 'a',
      partitionInfo: { queueId: 1, ...(strictMode !== undefined && { strictMode }) },
    })
    const { suc, msg, sleepTime, offsets } = await service.call('publish', {
      ...base,
      topicName: 't1',
      msgs: [to(), to(0)],
    })
    assert.deepEqual([suc, msg, sleepTime], [false, 'queue 1 is not a writable queue of topic t1; those are 2', 0])
    assert.deepEqual(offsets?.[1], { first: 1, count: 1, queueId: 2, offset: 1 })
    assert.deepEqual(await nextOffsets(), [1, 2])
  })

  test('gets nothing two seconds later from a publisher that knew the topic before, wherever it was', async () => {
    await createTopic(service, 't1', 2)
    const container = another()
    const first = placeOf(await send(container, 't1', ['a'])).queueId
    await setReadOnly(service, first)
    service.clock.advance(2_000)
    const before = await nextOffsets()
    for (let n = 0; n < 6; n++) await send(container, 't1', ['b'])
    assert.equal((await nextOffsets())[first - 1], before[first - 1])
  })

  test('is consumed to its end, and committed', async () => {
    const { consumerId } = await consume(service, 2)
    await publish(service, ['a', 'b'], 1)
    await setReadOnly(service, 1)
    const [queue] = (await assignment(service, consumerId)).queues
    assert.ok(queue)
    assert.deepEqual(await bodiesOf(service, queue), ['a', 'b'])
    assert.equal(await commit(service, queue, 2), 'advanced')
  })

  test('is not told of by a version: the assignment is as before', async () => {
    const { consumerId } = await consume(service, 2)
    const before = await assignment(service, consumerId)
    await setReadOnly(service, 1)
    assert.deepEqual(await assignment(service, consumerId), before)
  })

  test('goes on where it was when it is writable again', async () => {
    await createTopic(service, 't1', 2)
    await publish(service, ['a', 'b'], 1)
    await setReadOnly(service, 1)
    const { queues } = await setReadOnly(service, 1, false)
    assert.deepEqual(queues[0], { queueId: 1, readOnly: false, nextOffset: 3 })
    await publish(service, ['c'], 1)
    assert.deepEqual(await nextOffsets(), [4, 1])
  })
})

describe('the last writable queue of a topic', () => {
  const refused = (queueId: number) => [409, 'conflict', `queue ${queueId} is the last writable queue of topic t1`]
  const toReadOnly = (queueId: number) =>
    refusal(service, 'changeQueue', { readOnly: true }, { topicName: 't1', queueId: String(queueId) })
  const readOnly = async () => (await viewTopic(service)).queues.map(queue => queue.readOnly)

  test('stays so', async () => {
    await createTopic(service, 't1', 2)
    await setReadOnly(service, 1)
    assert.deepEqual(await toReadOnly(2), refused(2))
    assert.deepEqual(await readOnly(), [true, false])
  })

  test('stays so also where two are made read-only at once', async () => {
    await createTopic(service, 't1', 2)
    await Promise.all([toReadOnly(1), toReadOnly(2)])
    assert.ok((await readOnly()).includes(false))
    await publish(service, ['a'])
  })

  test('becomes writable again by the next request where one that made it read-only died', async () => {
    await createTopic(service, 't1', 2)
    await setReadOnly(service, 1)
    await service.core.store.setReadOnly('t1', 2, service.clock.now())
    assert.deepEqual(await toReadOnly(2), refused(2))
    assert.deepEqual(await readOnly(), [true, false])
  })

  test('can be made writable where it is not, by hand', async () => {
    await createTopic(service, 't1', 1)
    await service.core.store.setReadOnly('t1', 1, service.clock.now())
    const { queues } = await changeQueue(another(), 't1', '1', { readOnly: false })
    assert.deepEqual(queues, [{ queueId: 1, readOnly: false, nextOffset: 1 }])
  })
})

describe('a change of a queue', () => {
  test('is refused for a topic or a queue that is not there, and for an id that is none', async () => {
    await createTopic(service, 't1', 2)
    const change = (topicName: string, queueId: string) =>
      refusal(service, 'changeQueue', { readOnly: true }, { topicName, queueId })
    assert.deepEqual(await change('t2', '1'), [404, 'not_found', 'there is no topic t2'])
    for (const queueId of ['9', '0', '01', '1.0', '-1', '1e0', 'x', '__proto__']) {
      assert.deepEqual(await change('t1', queueId), [404, 'not_found', `topic t1 has no queue ${queueId}`])
    }
  })

  test('has to say what it is to be', async () => {
    await createTopic(service, 't1', 2)
    for (const request of [{}, { readOnly: 1 }, { readOnly: true, more: 1 }]) {
      const [status] = await refusal(service, 'changeQueue', request, { topicName: 't1', queueId: '1' })
      assert.equal(status, 400)
    }
  })
})
