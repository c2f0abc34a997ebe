import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import type { EndpointName } from '../../core/protocol/endpoints.ts'
import type { Client } from '../../sdk/src/client.ts'
import type { Message } from '../../sdk/src/message.ts'
import { live as liveInSteps } from './java-client.ts'
import { nameOfPath, openNodeClient } from './node-client.ts'
import { createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let clients: Client[]
let requests: EndpointName[]
let seen: Message[]
afterEach(async () => {
  await service.pass(Promise.all(clients.map(client => client.close())))
  await service.close()
})

async function setUp(queues: number, pullHoldMs: number) {
  service = openService({ settings: { pullHoldMs } })
  clients = []
  requests = []
  seen = []
  await createTopic(service, 't1', queues)
  await createGroup(service, 'g1', ['t1'])
}

async function start() {
  const client = openNodeClient(service, 1 + clients.length, transport => (path, request, options) => {
    requests.push(nameOfPath(path))
    return transport(path, request, options)
  })
  clients.push(client)
  await service.pass(
    client.consumer({ groupName: 'g1', topics: { t1: messages => void seen.push(...messages) } }).start(),
  )
}

const live = (ms: number) => liveInSteps(service, ms, 250)
const count = (name: EndpointName) => requests.filter(made => made === name).length

describe('ten Node consumers of fifty queues in which nothing happens', () => {
  const failQueues = 2
  const minutes = 10

  for (const [pullHoldMs, where] of [
    [0, 'where pulls are not held'],
    [5_000, 'where pulls are held'],
  ] as const) {
    test(`ask in ten minutes what a pull of each queue every five seconds comes to, and little else, ${where}`, async () => {
      await setUp(50, pullHoldMs)
      for (let consumer = 0; consumer < 10; consumer++) await start()
      await live(120_000)
      requests.length = 0
      await live(minutes * 60_000)
      const pulls = count('pullData')
      assert.ok(pulls <= (50 + failQueues) * minutes * 12 + 52, `${pulls} pulls`)
      assert.equal(count('heartbeat'), 10 * minutes * 6)
      // Each looks every five minutes whether it has missed something.
      assert.ok(count('getConsumerGroupPolling') <= 10 * 3, `${count('getConsumerGroupPolling')} polls`)
      assert.equal(requests.length, pulls + count('heartbeat') + count('getConsumerGroupPolling'))

      for (let queueId = 1; queueId <= 50; queueId++) await publish(service, ['x'], queueId)
      await live(pullHoldMs > 0 ? 250 : 5_250)
      assert.equal(seen.length, 50)
    })
  }
})

describe('a Node consumer of a tag that no message has', () => {
  test('passes a thousand messages over with few pulls and no handler call, and lags behind nothing', async () => {
    await setUp(1, 0)
    await service.call('subscribe', { tag: 'a' }, { groupName: 'g1', topicName: 't1' })
    await start()
    const sender = openNodeClient(service, 99)
    const sent = Array.from({ length: 1_000 }, (_, index) => ({ body: `${index}`, tag: 'b' }))
    await service.pass(sender.publish('t1', sent))
    await sender.close()
    requests.length = 0
    await live(10_000)
    const { queues } = await service.call('getGroup', undefined, { groupName: 'g1' })
    assert.deepEqual([seen, queues[0]?.offset, queues[0]?.lag], [[], 1_000, 0])
    assert.equal(count('commitOffset'), 1)
    // As many as an idle consumer makes of three queues, and a few more.
    assert.ok(count('pullData') <= 3 * 15, `${count('pullData')} pulls`)
  })
})
