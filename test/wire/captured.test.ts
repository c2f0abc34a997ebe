import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import type { EndpointName } from '../../core/protocol/endpoints.ts'
import { createGroup, createTopic, pull } from './scene.ts'
import { openService, type Service } from './service.ts'

/** Requests as the unmodified Java client 5.5.1 was recorded to send them, in the order of a client's life. */

let service: Service
beforeEach(() => {
  service = openService()
})
afterEach(() => service.close())

/** The recorded ids become those that are given out here. */
const withIds = (text: string) =>
  text
    .replace(/"(consumerId|id)":101/, '"$1":1')
    .replaceAll('"queueId":11', '"queueId":1')
    .replaceAll('"queueOffsetId":1001', '"queueOffsetId":1')

const captured: [EndpointName, string][] = [
  ['getMetaGroup', '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2"}'],
  ['getTopicQueueIds', '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","topicNames":["t1"]}'],
  ['register', '{"lan":"java","sdkVersion":"5.5.1","clientIp":"10.1.1.1","name":"10.1.1.1|28959|5298|8087"}'],
  [
    'registerConsumerGroup',
    '{"lan":"java","sdkVersion":"5.5.1","clientIp":"10.1.1.1","consumerId":101,"consumerName":"10.1.1.1|28959|5298|8087","subEnv":"default","consumerGroupNames":{"g1":["t1"]}}',
  ],
  ['heartbeat', '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","consumerId":101,"asyn":0}'],
  [
    'getConsumerGroupPolling',
    '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","consumerId":101,"consumerGroupVersion":{"g1":2}}',
  ],
  [
    'publish',
    `{"lan":"java","sdkVersion":"5.5.1","clientIp":"10.1.1.1",
 "msgs":[{"id":0,"tag":"tagA","bizId":"b2","head":{"k":"v"},"body":"withpart","retryCount":0,
          "partitionInfo":{"queueId":11,"strictMode":1}},
         {"id":0,"tag":"","bizId":"","body":"bare","retryCount":0}],
 "topicName":"t1","token":"tok","synFlag":1}`,
  ],
  [
    'pullData',
    '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","queueId":11,"offsetStart":0,"offsetEnd":50,"topicName":"t1","consumerGroupName":"g1"}',
  ],
  [
    'commitOffset',
    `{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","queueOffsets":[
 {"queueOffsetId":1001,"offsetVersion":0,"offset":4,"consumerGroupName":"g1","topicName":"t1"}],"flag":0}`,
  ],
  [
    'getMessageCount',
    '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","consumerGroupName":"g1","topics":["t1"]}',
  ],
  ['getTopic', '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","consumerGroupName":"g1"}'],
  ['getGroupTopic', '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","consumerGroupNames":["g1","g2"]}'],
  [
    'addCat',
    '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","method":"publish_fail","json":"{...request...}","msg":"x"}',
  ],
  [
    'addOpLog',
    '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","consumerGroupName":"g1","content":"消费端,consumer_10.1.1.1|28959|5298|8087, receive init data,从服务端127.0.0.1收到初始化数据,{...}","consumerName":"10.1.1.1|28959|5298|8087"}',
  ],
  [
    'sendMail',
    '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","topicName":"t1","type":2,"subject":"消息发送失败,客户端：10.1.1.1,Topic:t1","content":"消息发送异常，...","server":false}',
  ],
  [
    'addLog',
    '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","queueOffsetId":1001,"consumerGroupName":"g1","consumerGroupId":0,"consumerName":"10.1.1.1|28959|5298|8087","topicName":"t1","queueId":11,"traceId":"6f0c...","bizId":"b1","action":"bengin_call","type":4}',
  ],
  ['deRegister', '{"lan":"java","sdkVersion":"5.5.1","clientIp":"192.0.2.2","id":101}'],
]

suite('the requests of an unmodified Java client', () => {
  test('are accepted verbatim, and with the ids that it was given succeed', async () => {
    await createTopic(service, 't1')
    await createGroup(service, 'g1', ['t1'])
    for (const [endpoint, request] of captured) {
      const { text, json } = await service.pass(service.send(endpoint, withIds(request)))
      assert.equal(json.suc, true, `${endpoint}: ${text}`)
    }
    assert.deepEqual((await pull(service, 1, 0, 50)).map(message => message.body).sort(), ['bare', 'withpart'])
  })

  for (const [endpoint, request] of captured) {
    test(`are answered with 200 before there is anything: ${endpoint}`, async () => {
      const { status, json } = await service.pass(service.send(endpoint, request))
      assert.deepEqual([status, typeof json.suc], [200, 'boolean'])
    })
  }
})

suite('a request of a client that is newer, or writes null for what it leaves out', () => {
  for (const [endpoint, text] of captured) {
    const request = JSON.parse(text)

    test(`may have fields that are not known: ${endpoint}`, async () => {
      const expected = await service.pass(service.send(endpoint, request))
      const newer = openService()
      const { json } = await newer.pass(newer.send(endpoint, { ...request, futureField: { a: [null] } }))
      assert.deepEqual(json, expected.json)
      await newer.close()
    })

    test(`may have null in each of its fields, which is answered as without it: ${endpoint}`, async () => {
      const settings = { pollHoldMs: 0 }
      const [one, other] = [openService({ settings }), openService({ settings })]
      for (const field of Object.keys(request)) {
        const { [field]: _, ...without } = request
        const expected = await one.send(endpoint, without)
        const { status, json } = await other.send(endpoint, { ...request, [field]: null })
        assert.deepEqual([status, json], [200, expected.json], field)
      }
      await one.close()
      await other.close()
    })
  }
})

suite('the life of an unmodified Java client', () => {
  test('register, join, poll four times, pull, commit, final commit, leave: the next one goes on from there', async () => {
    const me = { lan: 'java', sdkVersion: '5.5.1', clientIp: '10.1.1.1' }
    await createTopic(service, 't1', 2)
    await createGroup(service, 'g1', ['t1'])

    async function live(name: string, until: number) {
      const { id } = await service.call('register', { ...me, name })
      await service.call('registerConsumerGroup', {
        ...me,
        consumerId: id,
        consumerName: name,
        subEnv: 'default',
        consumerGroupNames: { g1: ['t1'] },
      })
      let version = 0
      let queues: { queueOffsetId: number; offsetVersion: number; offset: number; queueId: number }[] = []
      for (let polls = 0; polls < 4; polls++) {
        const request = { ...me, consumerId: id, consumerGroupVersion: { g1: version } }
        const { consumerGroups } = await service.pass(service.call('getConsumerGroupPolling', request))
        if (consumerGroups?.g1) {
          version = consumerGroups.g1.meta.version
          queues = Object.values(consumerGroups.g1.queues).filter(queue => queue.topicType === 1)
        }
      }
      const seen: string[] = []
      for (const { queueId, offset, queueOffsetId, offsetVersion } of queues) {
        const messages = await pull(service, queueId, offset, offset + 50)
        const taken = messages.slice(0, until)
        seen.push(...taken.map(message => message.body))
        const entry = { queueOffsetId, offsetVersion, offset: taken.at(-1)?.id ?? offset, consumerGroupName: 'g1' }
        await service.call('commitOffset', { ...me, queueOffsets: [{ ...entry, topicName: 't1' }], flag: 1 })
      }
      await service.call('deRegister', { ...me, id })
      return seen
    }

    for (const queueId of [1, 2]) {
      const msgs = ['a', 'b', 'c'].map(body => ({
        body: `${queueId}${body}`,
        partitionInfo: { queueId, strictMode: 1 },
      }))
      await service.call('publish', { ...me, topicName: 't1', msgs, synFlag: 1 })
    }
    assert.deepEqual(await live('first', 1), ['1a', '2a'])
    assert.deepEqual(await live('second', 50), ['1b', '1c', '2b', '2c'])
    assert.deepEqual(await live('third', 50), [])
  })
})
