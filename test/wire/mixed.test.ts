import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Client } from '../../sdk/src/client.ts'
import { type Handled, type JavaClient, live, startJavaClient } from './java-client.ts'
import { openNodeClient } from './node-client.ts'
import { viewGroup } from './operator.ts'
import { createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let clients: { kill?: () => void; close: () => Promise<void> }[]
let seen: Handled[]
beforeEach(async () => {
  service = openService()
  clients = []
  seen = []
  await createTopic(service, 't1', 4)
  await createGroup(service, 'g1', ['t1'])
  await service.call('subscribe', { threadSize: 1 }, { groupName: 'g1', topicName: 't1' })
})
afterEach(async () => {
  for (const { kill, close } of clients) {
    if (kill) kill()
    else await service.pass(close())
  }
  await service.close()
})

async function startJava(name: string, origin = 'g1'): Promise<JavaClient> {
  const client = await startJavaClient(service, name, { origin, seen })
  clients.push(client)
  return client
}

async function startNode(name: string, groupName = 'g1'): Promise<{ client: Client; queueIds: () => number[] }> {
  const client = openNodeClient(service, clients.length + 1)
  clients.push(client)
  const consumer = client.consumer({
    groupName,
    topics: {
      t1: messages => {
        for (const { queueId, body } of messages) seen.push({ queueId, body, by: name })
      },
    },
  })
  await service.pass(consumer.start())
  const queueIds = () =>
    consumer
      .status()
      .queues.filter(queue => queue.topicName === 't1')
      .map(queue => queue.queueId)
      .sort((a, b) => a - b)
  return { client, queueIds }
}

let sent = 0
/** Sends messages to each queue, numbered on. */
async function send(count: number): Promise<void> {
  for (let n = 0; n < count; n++, sent++) {
    for (const queueId of [1, 2, 3, 4]) await publish(service, [`${queueId}/${String(sent).padStart(3, '0')}`], queueId)
  }
}

/** Each message of each queue was handled once, and in order, whoever handled it. */
function assertOnceInOrder(messages = seen) {
  for (const queueId of [1, 2, 3, 4]) {
    const bodies = messages.filter(message => message.queueId === queueId).map(message => message.body)
    assert.deepEqual(bodies, [...new Set(bodies)].sort(), `queue ${queueId}`)
    assert.equal(bodies.length, sent, `queue ${queueId}`)
  }
}

const lag = async () => (await viewGroup(service)).queues.reduce((sum, queue) => sum + queue.lag, 0)

describe('a group with Java and Node consumers', () => {
  beforeEach(() => {
    sent = 0
  })

  test('hands queues over from Java to Node: by the final commit of what was consumed', async () => {
    const java = await startJava('java')
    await live(service, 3_000)
    await send(5)
    await live(service, 2_000)
    const node = await startNode('node')
    await send(5)
    await live(service, 6_000)
    assert.deepEqual([java.queueIds().length, node.queueIds().length], [2, 2])
    await send(5)
    await live(service, 3_000)
    assertOnceInOrder()
    assert.equal(await lag(), 0)
  })

  test('hands queues over from Java to Node: by the version that is presented, where nothing was consumed', async () => {
    const java = await startJava('java')
    await live(service, 3_000)
    const node = await startNode('node')
    await live(service, 6_000)
    assert.deepEqual([java.queueIds().length, node.queueIds().length], [2, 2])
    await send(3)
    await live(service, 3_000)
    assertOnceInOrder()
    assert.deepEqual([...new Set(seen.map(message => message.by))].sort(), ['java', 'node'])
  })

  test('hands queues over from Node to Java while both live', async () => {
    const node = await startNode('node')
    await live(service, 2_000)
    await send(5)
    await live(service, 1_000)
    const java = await startJava('java')
    await send(5)
    await live(service, 6_000)
    assert.deepEqual([java.queueIds().length, node.queueIds().length], [2, 2])
    await send(5)
    await live(service, 3_000)
    assertOnceInOrder()
    assert.equal(await lag(), 0)
  })

  test('gives all to Node when Java is closed, and all to Java when Node is', async () => {
    const first = await startJava('first')
    const node = await startNode('node')
    await live(service, 6_000)
    await send(5)
    await live(service, 2_000)
    await service.pass(first.close())
    await live(service, 6_000)
    assert.deepEqual(node.queueIds(), [1, 2, 3, 4])
    await send(5)
    await live(service, 2_000)
    const second = await startJava('second')
    await live(service, 6_000)
    await service.pass(node.client.close())
    await send(5)
    await live(service, 6_000)
    assert.deepEqual(second.queueIds(), [1, 2, 3, 4])
    await live(service, 2_000)
    assertOnceInOrder()
    assert.equal(await lag(), 0)
  })

  test('loses nothing when Java is killed: Node has all within the session time-out and what it takes to be noticed', async () => {
    const java = await startJava('java')
    const node = await startNode('node')
    await live(service, 6_000)
    await send(5)
    await live(service, 2_000)
    java.kill()
    await send(5)
    await live(service, 60_000)
    assert.deepEqual(node.queueIds(), [1, 2, 3, 4])
    const handled = new Set(seen.map(message => message.body))
    assert.equal(handled.size, 4 * sent)
    assert.equal(await lag(), 0)
  })

  test('gives each one everything where it is a broadcast group', async () => {
    await service.call('createGroup', { name: 'g2', mode: 'broadcast' })
    await service.call('subscribe', { threadSize: 1 }, { groupName: 'g2', topicName: 't1' })
    await startJava('java', 'g2')
    const node = await startNode('node', 'g2')
    await live(service, 4_000)
    await send(3)
    await live(service, 4_000)
    for (const by of ['java', 'node']) assertOnceInOrder(seen.filter(message => message.by === by))
    assert.deepEqual(node.queueIds(), [1, 2, 3, 4])
    await service.call('addQueues', { count: 1 }, { topicName: 't1' })
    await service.call('resetOffsets', { of: { queueId: 1 }, to: 'start' }, { groupName: 'g2' })
    await live(service, 6_000)
    assert.equal(node.queueIds().length, 5)
    assert.equal(seen.filter(message => message.queueId === 1).length, 2 * 2 * sent)
  })
})
