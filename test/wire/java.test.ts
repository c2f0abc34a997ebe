import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { type JavaClient, live, startJavaClient } from './java-client.ts'
import { addQueues, removeQueue, setReadOnly, viewGroup } from './operator.ts'
import { base, createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let clients: JavaClient[]
beforeEach(async () => {
  service = openService()
  clients = []
  await createTopic(service, 't1', 2)
  await createGroup(service, 'g1', ['t1'])
})
afterEach(async () => {
  for (const client of clients) client.kill()
  await service.close()
})

async function startClient(name: string, options = {}): Promise<JavaClient> {
  const client = await startJavaClient(service, name, options)
  clients.push(client)
  return client
}

const bodiesOf = (client: JavaClient, queueId: number) =>
  client.seen.filter(message => message.queueId === queueId).map(message => message.body)
const all = () => clients.flatMap(client => client.seen.map(message => message.body)).sort()

describe('an unmodified Java client', () => {
  test('starts within two seconds of its registration, though it waits for four answers', async () => {
    const client = await startClient('a')
    await live(service, 1_000)
    assert.deepEqual(client.queueIds(), [])
    await live(service, 1_000)
    assert.deepEqual(client.queueIds(), [1, 2])
  })

  test('starts again within three seconds of a rebalance, and consumes all of a queue in order, once', async () => {
    const first = await startClient('a')
    await live(service, 3_000)
    for (const queueId of [1, 2])
      await publish(
        service,
        ['1', '2', '3'].map(n => `${queueId}/${n}`),
        queueId,
      )
    await live(service, 2_000)
    const second = await startClient('b')
    await live(service, 3_000)
    assert.equal(first.queueIds().length + second.queueIds().length, 2)
    for (const queueId of [1, 2])
      await publish(
        service,
        ['4', '5'].map(n => `${queueId}/${n}`),
        queueId,
      )
    await live(service, 2_000)
    assert.deepEqual(all(), ['1/1', '1/2', '1/3', '1/4', '1/5', '2/1', '2/2', '2/3', '2/4', '2/5'])
  })

  test('hands over also what it has never committed anything of: by presenting the new version', async () => {
    const first = await startClient('a')
    await live(service, 3_000)
    const second = await startClient('b')
    await live(service, 4_000)
    assert.deepEqual([first.queueIds().length, second.queueIds().length], [1, 1])
  })

  test('gives its queues to the other one when it is closed, which repeats nothing', async () => {
    const first = await startClient('a')
    await live(service, 3_000)
    await publish(service, ['1/1', '1/2'], 1)
    await live(service, 2_000)
    const second = await startClient('b')
    await live(service, 4_000)
    await first.close()
    await live(service, 4_000)
    assert.deepEqual(second.queueIds(), [1, 2])
    await publish(service, ['1/3'], 1)
    await live(service, 2_000)
    assert.deepEqual(all(), ['1/1', '1/2', '1/3'])
  })

  test('polls less than twice in ten seconds while nothing happens', async () => {
    const client = await startClient('a')
    await live(service, 20_000)
    const before = client.counts.polls
    await live(service, 60_000)
    assert.ok(client.counts.polls - before <= 12, `${client.counts.polls - before} polls`)
  })

  test('that is not known any more polls no more often, restarts, and goes on where it was', async () => {
    const client = await startClient('a')
    await live(service, 3_000)
    await publish(service, ['1/1', '1/2'], 1)
    await live(service, 3_000)
    const before = client.counts.polls
    await service.call('deRegister', { ...base, id: client.id })
    await publish(service, ['1/3'], 1)
    await live(service, 30_000)
    assert.equal(client.counts.restarts, 1)
    assert.ok(client.counts.polls - before <= 20, `${client.counts.polls - before} polls`)
    assert.deepEqual(client.queueIds(), [1, 2])
    assert.deepEqual([...new Set(bodiesOf(client, 1))], ['1/1', '1/2', '1/3'])
  })

  test('that is not known is held for the whole time, though its group is just being rebalanced', async () => {
    const client = await startClient('a')
    await live(service, 3_000)
    await service.call('deRegister', { ...base, id: client.id })
    const before = client.counts.polls
    await startClient('b')
    await live(service, 5_000)
    assert.ok(client.counts.polls - before <= 2, `${client.counts.polls - before} polls`)
  })

  test('takes a reset up while it runs, and begins there', async () => {
    const client = await startClient('a')
    await live(service, 3_000)
    await publish(service, ['1/1', '1/2'], 1)
    await live(service, 2_000)
    await service.call('resetOffsets', { of: { queueId: 1 }, to: 'start' }, { groupName: 'g1' })
    await live(service, 2_000)
    assert.deepEqual(bodiesOf(client, 1), ['1/1', '1/2', '1/1', '1/2'])
    const { queues } = await viewGroup(service)
    assert.deepEqual(
      queues.map(queue => queue.lag),
      [0, 0],
    )
  })

  test('stops and starts a queue while it runs, and loses nothing', async () => {
    const client = await startClient('a')
    await live(service, 3_000)
    await service.call('stopQueues', { of: { queueId: 1 } }, { groupName: 'g1' })
    await live(service, 1_000)
    await publish(service, ['1/1'], 1)
    await live(service, 3_000)
    assert.deepEqual(client.seen, [])
    await service.call('startQueues', { of: { queueId: 1 } }, { groupName: 'g1' })
    await live(service, 2_000)
    assert.deepEqual(bodiesOf(client, 1), ['1/1'])
  })

  test('takes up queues that come, and drops those that go', async () => {
    const client = await startClient('a')
    await live(service, 3_000)
    const [added = 0] = await addQueues(service)
    await publish(service, ['new/1'], added)
    await live(service, 4_000)
    assert.deepEqual([client.queueIds(), bodiesOf(client, added)], [[1, 2, added], ['new/1']])
    await setReadOnly(service, 1)
    await live(service, 60_000)
    await removeQueue(service, 1)
    await live(service, 4_000)
    assert.deepEqual(client.queueIds(), [2, added])
  })

  test('takes up topics that its group subscribes to, and drops those that it unsubscribes from', async () => {
    const [other = 0] = await createTopic(service, 't2')
    const client = await startClient('a', { topics: ['t1', 't2'] })
    await live(service, 3_000)
    await service.call('subscribe', {}, { groupName: 'g1', topicName: 't2' })
    await live(service, 4_000)
    assert.deepEqual(client.queueIds(), [1, 2, other])
    await service.call('unsubscribe', undefined, { groupName: 'g1', topicName: 't1' })
    await live(service, 4_000)
    assert.deepEqual(client.queueIds(), [other])
  })

  test('has in a broadcast group all that is sent while it runs, as each other one has', async () => {
    await service.call('createGroup', { name: 'g2', mode: 'broadcast' })
    await service.call('subscribe', {}, { groupName: 'g2', topicName: 't1' })
    const first = await startClient('a', { origin: 'g2' })
    await live(service, 3_000)
    await publish(service, ['1/1'], 1)
    await live(service, 1_000)
    const second = await startClient('b', { origin: 'g2' })
    await live(service, 3_000)
    await publish(service, ['1/2'], 1)
    const [added = 0] = await addQueues(service)
    await publish(service, ['new/1'], added)
    await live(service, 5_000)
    assert.deepEqual(
      first.seen.map(message => message.body),
      ['1/1', '1/2', 'new/1'],
    )
    assert.deepEqual(
      second.seen.map(message => message.body),
      ['1/2', 'new/1'],
    )
    await first.close()
    assert.equal(await service.core.store.readGroup(first.groupName), undefined)
  })
})

describe('the check that a Java client makes every two minutes', () => {
  test('is answered at once, with what it was told before', async () => {
    const client = await startClient('a')
    await live(service, 20_000)
    const asked = { ...base, consumerId: client.id, consumerGroupVersion: { g1: 0 } }
    const { consumerGroups } = await service.call('getConsumerGroupPolling', asked)
    const told = Object.values(consumerGroups?.g1?.queues ?? {})
    assert.deepEqual(
      told.map(({ queueId, topicType }) => [queueId, topicType]),
      [
        [1, 1],
        [2, 1],
        [3, 2],
        [4, 2],
      ],
    )
    await live(service, 5_000)
    assert.deepEqual(client.queueIds(), [1, 2])
  })
})
