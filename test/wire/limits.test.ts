import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { limits } from '../../core/protocol/limits.ts'
import { createTopic, pull } from './scene.ts'
import { openService, requestOfBytes, type Service } from './service.ts'

let service: Service
let queueId = 0
beforeEach(async () => {
  service = openService({ settings: { compression: 'fast' } })
  queueId = (await createTopic(service, 't1'))[0] ?? 0
})
afterEach(() => service.close())

const publish = (msgs: object[]) => service.call('publish', { topicName: 't1', msgs })
const entries = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']))
/** A head whose JSON has so many bytes. */
const headOfBytes = (bytes: number, unit = 'x') => {
  const room = bytes - '{"k":""}'.length
  const units = Math.floor(room / Buffer.byteLength(unit))
  return { k: unit.repeat(units) + 'x'.repeat(room - units * Buffer.byteLength(unit)) }
}
/** A text of so many bytes that hardly compresses. */
function noise(bytes: number, alphabet: string): string {
  let seed = 12345
  let text = ''
  for (let i = 0; i < bytes; i++) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    text += alphabet[(seed >>> 12) % alphabet.length]
  }
  return text
}
const printable = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).join('')
const ascii = Array.from({ length: 128 }, (_, i) => String.fromCharCode(i)).join('')

suite('a limit takes what is just within it', () => {
  const within: [string, object[]][] = [
    ['a body of 262144 bytes', [{ body: 'x'.repeat(262_144) }]],
    ['a body of 262144 bytes in 131072 characters', [{ body: 'é'.repeat(131_072) }]],
    ['a body of 262143 bytes in 87381 characters', [{ body: '漢'.repeat(87_381) }]],
    ['a body of 262144 bytes in 131072 code units', [{ body: '😀'.repeat(65_536) }]],
    ['a body of 262144 bytes that is escaped sixfold', [{ body: '\u0001'.repeat(262_144) }]],
    ['a body of 262144 bytes that hardly compresses', [{ body: noise(262_144, printable) }]],
    ['a body of 262144 bytes that is escaped in part and hardly compresses', [{ body: noise(262_144, ascii) }]],
    ['1000 messages', Array.from({ length: 1000 }, () => ({ body: 'a' }))],
    ['a head of 32 entries', [{ body: '', head: entries(32) }]],
    ['a head of 8192 bytes', [{ body: '', head: headOfBytes(8192) }]],
    ['a head of 8192 bytes in fewer characters', [{ body: '', head: headOfBytes(8192, '漢') }]],
    ['a tag of 1000 characters', [{ body: '', tag: 'x'.repeat(1000) }]],
    ['a bizId of 200 characters', [{ body: '', bizId: 'x'.repeat(200) }]],
    ['a traceId of 200 characters', [{ body: '', traceId: '漢'.repeat(200) }]],
    ['a key of 200 characters', [{ body: '', key: 'x'.repeat(200) }]],
  ]
  for (const [what, msgs] of within) {
    test(what, async () => {
      const { suc, msg } = await publish(msgs)
      assert.equal(suc, true, msg)
      assert.equal((await pull(service, queueId, 0, 1000)).length, msgs.length)
    })
  }
})

suite('a limit refuses what is just beyond it for good, and says what, how much and what would do', () => {
  const refusals: [string, object[], string][] = [
    ['a body', [{ body: 'x'.repeat(262_145) }], 'message 0: its body has 262145 bytes; at most 262144 are accepted'],
    [
      'a body in fewer characters',
      [{ body: '' }, { body: `${'é'.repeat(131_072)}x` }],
      'message 1: its body has 262145 bytes; at most 262144 are accepted',
    ],
    [
      'a body of 1 MB of brackets',
      [{ body: '['.repeat(1_048_576) }],
      'message 0: its body has 1048576 bytes; at most 262144 are accepted',
    ],
    [
      'half surrogate pairs, three bytes each',
      [{ body: '\ud800'.repeat(87_382) }],
      'message 0: its body has 262146 bytes; at most 262144 are accepted',
    ],
    [
      'the number of messages',
      Array.from({ length: 1001 }, () => ({ body: '' })),
      'a publish of 1001 messages; at most 1000 are accepted',
    ],
    [
      'the entries of a head',
      [{ body: '', head: entries(33) }],
      'message 0: its head has 33 entries; at most 32 are accepted',
    ],
    [
      'a head',
      [{ body: '', head: headOfBytes(8193) }],
      'message 0: its head has 8193 bytes; at most 8192 are accepted',
    ],
    [
      'a head in fewer characters',
      [{ body: '', head: headOfBytes(8193, '漢') }],
      'message 0: its head has 8193 bytes; at most 8192 are accepted',
    ],
    [
      'a tag',
      [{ body: '', tag: 'x'.repeat(1001) }],
      'message 0: its tag has 1001 characters; at most 1000 are accepted',
    ],
    [
      'a bizId',
      [{ body: '', bizId: 'x'.repeat(201) }],
      'message 0: its bizId has 201 characters; at most 200 are accepted',
    ],
    [
      'a traceId',
      [{ body: '', traceId: 'x'.repeat(201) }],
      'message 0: its traceId has 201 characters; at most 200 are accepted',
    ],
    ['a key', [{ body: '', key: 'x'.repeat(201) }], 'message 0: its key has 201 characters; at most 200 are accepted'],
  ]
  for (const [what, msgs, msg] of refusals) {
    test(what, async () => {
      const { time, serverIp, ...answer } = await publish(msgs)
      assert.deepEqual(answer, { suc: false, msg, sleepTime: 0 })
      assert.deepEqual(await pull(service, queueId, 0, 1000), [])
    })
  }
})

suite('a publish near its largest', () => {
  test('of 5 MB, in messages that hardly compress, is stored whole and in order', async () => {
    const bodies = Array.from({ length: 20 }, (_, i) => `${i}:${noise(250_000, printable)}`)
    const request = { topicName: 't1', msgs: bodies.map(body => ({ body })) }
    const { suc, msg } = await service.call('publish', request)
    assert.equal(suc, true, msg)
    const seen: string[] = []
    for (let at = 0; at < bodies.length; at = seen.length) {
      seen.push(...(await pull(service, queueId, at, at + 1000)).map(message => message.body))
    }
    assert.ok(seen.every((body, i) => body === bodies[i]))
  })

  test('of exactly 5 MB is taken', async () => {
    const request = requestOfBytes({ topicName: 't1', msgs: [{ body: 'a' }] })
    assert.equal((await service.call('publish', request)).suc, true)
  })

  test('of one byte more is answered with 413 and both numbers', async () => {
    const request = requestOfBytes({ topicName: 't1', msgs: [{ body: 'a' }] }, limits.maxRequestBytes + 1)
    const { status, json } = await service.send('publish', request)
    assert.equal(status, 413)
    assert.equal(json.code, 'payload_too_large')
    assert.equal(json.message, 'a request of 5242881 bytes; at most 5242880 are accepted')
  })

  test('counts bytes, not characters', async () => {
    const { status } = await service.send('publish', `{"topicName":"${'漢'.repeat(1_750_000)}"}`)
    assert.equal(status, 413)
  })
})

suite('a request that asks about very many things', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`)
  const versions = (count: number) => Object.fromEntries(many(count).map(name => [name, 0]))
  const entry = { queueOffsetId: 1, offsetVersion: 0, offset: 1, consumerGroupName: 'g1' }
  const refusals = [
    ['getTopicQueueIds', { topicNames: many(1001) }, 'topicNames: expected <=1000, not 1001'],
    ['getGroupTopic', { consumerGroupNames: many(1001) }, 'consumerGroupNames: expected <=1000, not 1001'],
    ['getMessageCount', { consumerGroupName: 'g1', topics: many(1001) }, 'topics: expected <=1000, not 1001'],
    ['heartbeat', { consumerIds: many(1001).map((_, i) => i + 1) }, 'consumerIds: expected <=1000, not 1001'],
    [
      'getConsumerGroupPolling',
      { consumerGroupVersion: versions(101) },
      'consumerGroupVersion: expected <=100, not 101',
    ],
    [
      'registerConsumerGroup',
      { consumerId: 1, consumerGroupNames: { g1: many(1001) } },
      'consumerGroupNames.*: expected <=1000, not 1001',
    ],
    [
      'commitOffset',
      { queueOffsets: Array.from({ length: 10_001 }, () => entry) },
      'queueOffsets: expected <=10000, not 10001',
    ],
  ] as const
  for (const [endpoint, request, message] of refusals) {
    test(`is refused: ${message}`, async () => {
      const { status, json } = await service.send(endpoint, request)
      assert.deepEqual([status, json.message], [400, message])
    })
  }

  test('is refused where it joins more than 100 groups', async () => {
    const consumerGroupNames = Object.fromEntries(many(101).map(name => [name, []]))
    const { suc, msg } = await service.call('registerConsumerGroup', { consumerId: 1, consumerGroupNames })
    assert.deepEqual([suc, msg], [false, '101 groups; at most 100 are accepted'])
  })
})
