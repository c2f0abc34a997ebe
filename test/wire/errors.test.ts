import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, suite, test } from 'node:test'
import { type EndpointName, endpoints } from '../../core/protocol/endpoints.ts'
import { type ErrorCode, errorTable } from '../../core/protocol/errors.ts'
import { type Store, StoreError } from '../../core/store.ts'
import { base, createTopic, pull } from './scene.ts'
import { eventFor, openService, type Reply, type Service } from './service.ts'

let service: Service
let lines: string[]
beforeEach(() => {
  service = openService()
  lines = []
  mock.method(console, 'error', (line: string) => lines.push(line))
})
afterEach(async () => {
  mock.restoreAll()
  await service.close()
})

function assertError(reply: Reply, code: ErrorCode, message?: string): void {
  const { status, json, headers } = reply
  assert.equal(status, errorTable[code].status, reply.text)
  assert.equal(json.code, code)
  assert.match(String(json.requestId), /^request-\d+$/)
  assert.match(headers['content-type'] ?? '', /^application\/json/)
  assert.equal(headers['retry-after'], errorTable[code].retryable ? '1' : undefined)
  if (message !== undefined) assert.equal(json.message, message)
}

suite('every answer of a client endpoint', () => {
  /** `getIp` answers with text; what is not PMQ's has fields that have to be there. */
  const others: EndpointName[] = ['getIp', 'claimQueues', 'renewClaims']
  const names = (Object.keys(endpoints) as EndpointName[]).filter(
    name => endpoints[name].function !== 'admin' && !others.includes(name),
  )
  for (const name of names) {
    test(`has suc, the time it took and the server's name, and no null: ${name}`, async () => {
      const { text, json, headers } = await service.pass(service.send(name, '{}'))
      assert.equal(typeof json.suc, 'boolean', text)
      assert.equal(typeof json.time, 'number')
      assert.equal(json.serverIp, 'pmq')
      assert.doesNotMatch(text, /[:,[]null/)
      assert.equal(headers['content-type'], 'application/json; charset=utf-8')
    })
  }

  test('has the time in nanoseconds', async () => {
    const { clock } = service
    const { store } = service.core
    const takeIds = store.takeIds
    store.takeIds = async (kind, count) => {
      clock.advance(7)
      return takeIds(kind, count)
    }
    assert.equal((await service.call('register', { ...base, name: 'a' })).time, 7_000_000)
  })
})

suite('a request that is not understood', () => {
  const secret = 'a body that is nobody else’s business'
  const refusals: [EndpointName, string, string][] = [
    ['publish', secret, 'the body is not JSON'],
    ['publish', `{"msgs":[{"body":"${secret}"}`, 'the body is not JSON'],
    ['publish', `"${secret}"`, 'the body: expected Object'],
    ['publish', '7', 'the body: expected Object'],
    ['publish', `[{"body":"${secret}"}]`, 'the body: expected Object'],
    ['publish', `{"msgs":"${secret}"}`, 'msgs: expected Array'],
    ['publish', `{"msgs":["${secret}"]}`, 'msgs.0: expected Object'],
    ['publish', '{"msgs":[null]}', 'msgs.0: expected Object'],
    ['publish', `{"msgs":[{"tag":"${secret}"}]}`, 'msgs.0.body: is required'],
    ['publish', '{"msgs":[{"body":null}]}', 'msgs.0.body: expected string'],
    ['publish', `{"msgs":[{"body":{"a":"${secret}"}}]}`, 'msgs.0.body: expected string'],
    ['publish', `{"msgs":[{"body":"","head":["${secret}"]}]}`, 'msgs.0.head: expected Object'],
    ['publish', `{"msgs":[{"body":"","head":{"k":{"a":"${secret}"}}}]}`, 'msgs.0.head.*: expected string'],
    ['publish', `{"msgs":[{"body":"","head":{"${secret}":7}}]}`, 'msgs.0.head.*: expected string'],
    ['publish', `{"msgs":[{"body":"","retryCount":"${secret}"}]}`, 'msgs.0.retryCount: expected number'],
    ['publish', `{"topicName":7,"msgs":[{"body":"${secret}"}]}`, 'topicName: expected string'],
    ['publish', `{"token":{"a":"${secret}"}}`, 'token: expected string'],
    ['publish', `{"publishId":"${secret}"}`, 'publishId: must be 1 to 64 visible ASCII characters'],
    ['publish', '{"attempt":0}', 'attempt: expected >=1, not 0'],
    ['pullData', '{"queueId":"1"}', 'queueId: expected number'],
    ['pullData', '{"queueId":1.5}', 'queueId: expected a whole number, not 1.5'],
    ['pullData', '{"offsetEnd":9007199254740992}', 'offsetEnd: expected a whole number, not 9007199254740992'],
    ['pullData', '{"maxBytes":4194305}', 'maxBytes: expected <=4194304, not 4194305'],
    ['heartbeat', '{"asyn":2}', 'asyn: expected (0 | 1)'],
    ['commitOffset', '{"queueOffsets":[{}]}', 'queueOffsets.0.queueOffsetId: is required'],
    ['commitOffset', '{"flag":true}', 'flag: expected (0 | 1)'],
    ['registerConsumerGroup', '{"consumerGroupNames":["g1"]}', 'consumerGroupNames: expected Object'],
    ['registerConsumerGroup', '{"consumerGroupNames":{"g1":"t1"}}', 'consumerGroupNames.*: expected Array'],
    ['registerConsumerGroup', '{"consumerGroupNames":{"g1":[7]}}', 'consumerGroupNames.*.0: expected string'],
    ['addCat', '[]', 'the body: expected Object'],
  ]
  for (const [endpoint, body, message] of refusals) {
    test(`is answered with 400 and what is wrong where: ${endpoint} ${body.replace(secret, '…')}`, async () => {
      assertError(await service.send(endpoint, body), 'bad_request', message)
    })

    test(`is not echoed: ${endpoint} ${body.replace(secret, '…')}`, async () => {
      const { text } = await service.send(endpoint, body)
      assert.ok(!text.includes(secret) && lines.length === 0)
    })
  }

  test('is named by a path of bounded length', async () => {
    const { text } = await service.send('publish', { msgs: [{ body: '', head: { ['k'.repeat(100_000)]: 7 } }] })
    assert.ok(text.length < 400)
  })

  test('is judged by its first fault: a list of millions would not fit into memory', async () => {
    const { json } = await service.send('publish', `{"msgs":[${'0,'.repeat(2_000_000)}0]}`)
    assert.equal(json.message, 'msgs.0: expected Object')
  })

  test('is refused when its base64 is not UTF-8', async () => {
    const event = eventFor(endpoints.publish, Buffer.from('{"token":"\xff"}', 'latin1').toString('base64'))
    assertError(
      await service.invoke('publish', { ...event, isBase64Encoded: true }),
      'bad_request',
      'the body is not UTF-8',
    )
  })
})

suite('a body in base64', () => {
  test('is read as the text that it encodes', async () => {
    const event = eventFor(endpoints.register, Buffer.from(JSON.stringify({ ...base, name: 'a' })).toString('base64'))
    assert.equal((await service.invoke('consume', { ...event, isBase64Encoded: true })).json.id, 1)
  })

  test('is bounded by its decoded bytes', async () => {
    const text = `{"padding":"${'x'.repeat(5 * 1024 * 1024)}"}`
    const event = eventFor(endpoints.publish, Buffer.from(text).toString('base64'))
    assertError(await service.invoke('publish', { ...event, isBase64Encoded: true }), 'payload_too_large')
  })
})

suite('what there is not', () => {
  test('a route', async () => {
    const event = { ...eventFor(endpoints.publish, '{}'), routeKey: 'POST /api/client/consumer/nothing' }
    assertError(await service.invoke('publish', event), 'not_found', 'there is no POST /api/client/consumer/nothing')
  })

  test('a route of another function', async () => {
    assertError(await service.invoke('publish', eventFor(endpoints.register, '{}')), 'not_found')
  })

  test('a topic', async () => {
    assertError(
      await service.send('getTopicView', undefined, { topicName: 'nothing' }),
      'not_found',
      'there is no topic nothing',
    )
  })
})

suite('a store that fails', () => {
  const token = 'a-token-of-somebody'
  const body = 'a body of somebody'
  /** Lets one operation of the store fail from now on. */
  function fail(operation: keyof Store, error: Error): void {
    Object.assign(service.core.store, {
      [operation]: async () => {
        throw error
      },
    })
  }
  const publishing = { ...base, topicName: 't1', token, msgs: [{ body }] }

  test('by asking for a slower pace on a read is answered with 429 and Retry-After', async () => {
    fail('readTopic', new StoreError('throttled', 'too fast'))
    assertError(await service.send('publish', publishing), 'throttled', errorTable.throttled.meaning)
  })

  test('by asking for a slower pace is not logged', async () => {
    fail('readTopic', new StoreError('throttled', 'too fast'))
    await service.send('publish', publishing)
    assert.deepEqual(lines, [])
  })

  test('by not answering is answered with 503, a request id and no detail', async () => {
    fail('readTopic', new StoreError('unavailable', 'no answer from 10.0.0.1', { cause: new Error('ECONNRESET') }))
    const reply = await service.send('publish', publishing)
    assertError(reply, 'unavailable', errorTable.unavailable.meaning)
    assert.deepEqual(Object.keys(reply.json).sort(), ['code', 'message', 'requestId'])
  })

  test('by a defect is answered with 500, a request id and no detail', async () => {
    fail('readTopic', new TypeError("Cannot read properties of undefined (reading 'x')"))
    const reply = await service.send('publish', publishing)
    assertError(reply, 'internal', errorTable.internal.meaning)
    assert.doesNotMatch(reply.text, /Cannot|at |\.ts/)
  })

  test('by throwing what is no error is answered with 500', async () => {
    fail('readTopic', 'a string' as unknown as Error)
    assertError(await service.send('publish', publishing), 'internal')
  })

  for (const error of [new StoreError('unavailable', 'no answer'), new TypeError('a defect')]) {
    test(`is logged in one line by the same request id, with its stack and its cause: ${error.name}`, async () => {
      error.cause = new Error('the cause')
      fail('readTopic', error)
      const { json } = await service.send('publish', publishing)
      assert.equal(lines.length, 1)
      const logged = JSON.parse(lines[0] ?? '')
      assert.equal(logged.requestId, json.requestId)
      assert.equal(logged.route, 'POST /api/client/consumer/publish')
      assert.match(logged.error.stack, /errors\.test\.ts/)
      assert.equal(logged.error.cause.message, 'the cause')
    })

    test(`is logged without the request's body and token: ${error.name}`, async () => {
      fail('readTopic', error)
      await service.send('publish', publishing)
      assert.ok(!lines.join().includes(token) && !lines.join().includes(body))
    })
  }

  test('by a batch that is damaged is logged without what the batch holds', async () => {
    const [queueId = 0] = await createTopic(service, 't1')
    const batch = { queueId, base: 1, count: 1, publishId: 'p', appendedAtMs: service.clock.now(), codec: 0 as const }
    // What the parser says of this quotes what it could not read.
    const bytes = Buffer.from('[{"body":secret')
    await service.core.store.appendBatch({ ...batch, expiresAtMs: service.clock.now() + 3_600_000, bytes })
    const request = { queueId, offsetStart: 0, offsetEnd: 50, topicName: 't1' }
    assertError(await service.send('pullData', request), 'internal')
    assert.equal(lines.length, 1)
    assert.ok(!lines.join().includes('secret'), lines.join())
  })

  test('is forgotten with the request: the next one is served', async () => {
    const { store } = service.core
    const { readTopic } = store
    const [queueId = 0] = await createTopic(service, 't1')
    fail('readTopic', new StoreError('throttled', 'too fast'))
    await service.send('publish', publishing)
    store.readTopic = readTopic
    assert.equal((await service.call('publish', publishing)).suc, true)
    assert.equal((await pull(service, queueId, 0, 50)).length, 1)
  })

  test('on a commit is answered with 503, upon which the client commits again', async () => {
    fail('commitOffset', new StoreError('unavailable', 'no answer'))
    const entry = { queueOffsetId: 1, offsetVersion: 1, offset: 1, consumerGroupName: 'g1' }
    assertError(await service.send('commitOffset', { queueOffsets: [entry] }), 'unavailable')
  })
})
