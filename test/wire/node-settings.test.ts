import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Client } from '../../sdk/src/client.ts'
import type { Consumer } from '../../sdk/src/consumer.ts'
import { live } from './java-client.ts'
import { openNodeClient } from './node-client.ts'
import { createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

/** A heartbeat, and how old a group's versions may be in the service. */
const soonMs = 11_500
const to = { groupName: 'g1', topicName: 't1' }

let service: Service
let clients: Client[]
let consumers: Consumer[]
/** The calls of all handlers, in the order in which they began. */
let calls: { queueId: number; offsets: number[] }[]
let queueIds: number[]
beforeEach(async () => {
  service = openService()
  clients = []
  consumers = []
  calls = []
  queueIds = await createTopic(service, 't1', 6)
  await createGroup(service, 'g1', ['t1'])
  await service.call('subscribe', { threadSize: 1, consumerBatchSize: 2 }, to)
  for (const seed of [1, 2, 3]) {
    const client = openNodeClient(service, seed)
    clients.push(client)
    const consumer = client.consumer({
      groupName: 'g1',
      topics: {
        async t1(messages, { queueId, signal }) {
          calls.push({ queueId, offsets: messages.map(({ offset }) => offset) })
          await service.clock.sleep(1_000, signal)
        },
      },
      stopTimeoutMs: 0,
    })
    consumers.push(consumer)
    await service.pass(consumer.start())
  }
  await live(service, soonMs)
})
afterEach(async () => {
  await service.pass(Promise.all(clients.map(client => client.close())))
  await service.close()
})

async function sendToEach(count: number) {
  const bodies = Array.from({ length: count }, (_, index) => `${index}`)
  for (const queueId of queueIds) await publish(service, bodies, queueId)
}

const statuses = () => consumers.map(consumer => consumer.status().queues.filter(({ topicName }) => topicName === 't1'))
const each = <T>(value: T) => [value, value, value].map(one => [one, one])
const handled = () => calls.flatMap(({ offsets }) => offsets).length
const newest = () => new Map(calls.map(({ queueId, offsets }) => [queueId, offsets]))

describe('what an operator changes counts for each member of a group within a heartbeat', () => {
  test('a stop and its end, for those who are busy and for one that has paused', async () => {
    await sendToEach(200)
    await live(service, 5_000)
    consumers[0]?.pause()
    await live(service, 5_000)
    await service.call('stopQueues', { of: 'all' }, { groupName: 'g1' })
    await live(service, soonMs)
    assert.deepEqual(
      statuses().map(queues => queues.map(({ pausedBy }) => pausedBy.includes('stop_flag'))),
      each(true),
    )
    const before = calls.length
    await live(service, 20_000)
    assert.equal(calls.length, before)
    consumers[0]?.resume()
    await service.call('startQueues', { of: 'all' }, { groupName: 'g1' })
    await live(service, soonMs)
    assert.deepEqual(
      statuses().map(queues => queues.map(({ state }) => state)),
      each('running'),
    )
    assert.deepEqual(new Set(calls.slice(before).map(({ queueId }) => queueId)), new Set(queueIds))
  })

  test('how many calls run at once, and with how many messages', async () => {
    await sendToEach(1_000)
    await live(service, 5_000)
    await service.call('subscribe', { threadSize: 3, consumerBatchSize: 7 }, to)
    await live(service, soonMs)
    assert.deepEqual(
      statuses().map(queues => queues.map(({ running }) => running)),
      each(3),
    )
    assert.ok([...newest().values()].every(offsets => offsets.length === 7))
  })

  test('a reset, for those who are busy and for those who have nothing to do', async () => {
    for (const count of [4, 100]) {
      await sendToEach(count)
      await live(service, 10_000)
      calls.length = 0
      await service.call('resetOffsets', { of: 'all', to: 'start' }, { groupName: 'g1' })
      await live(service, soonMs)
      const again = calls.filter(({ offsets }) => offsets[0] === 1).map(({ queueId }) => queueId)
      assert.deepEqual(again.toSorted(), queueIds)
    }
  })

  test('a delay of retries, for what waits already', async () => {
    await service.call('subscribe', { retryDelaySeconds: 3_600, timeoutSeconds: 1, retryCount: 1 }, to)
    await live(service, soonMs)
    calls.length = 0
    await sendToEach(1)
    await live(service, 30_000)
    assert.equal(handled(), 6)
    await service.call('subscribe', { retryDelaySeconds: 1 }, to)
    await live(service, soonMs)
    assert.equal(handled(), 12)
  })
})
