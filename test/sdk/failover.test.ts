import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import { createClient } from '../../sdk/src/client.ts'
import { type ClientErrorCode, PmqClientError } from '../../sdk/src/errors.ts'
import { createFailover } from '../../sdk/src/failover.ts'
import type { HttpTransport } from '../../sdk/src/transport.ts'
import { createFakeService, type FakeService, type Fault } from './fake-service.ts'
import { createManualClock, type ManualClock, seededRandom, settle } from './manual-clock.ts'

const failure = (code: ClientErrorCode, status?: number) => new PmqClientError(code, 'it failed', { status })
const away = failure('unreachable')

/** Servers that answer with their names, or with the failure that they have. */
function setUp(count = 3, random: () => number = () => 0) {
  const failures = new Map<string, PmqClientError>()
  const names = Array.from({ length: count }, (_, index) => 'abc'.charAt(index))
  const closed: string[] = []
  const servers = names.map((name): HttpTransport => {
    return {
      async call() {
        const error = failures.get(name)
        if (error) throw error
        return name
      },
      endIdle: () => undefined,
      close: () => closed.push(name),
    }
  })
  const { call, close } = createFailover(servers, random)
  /** The name of the server that answers, or the code of its failure. */
  const ask = () => call('/x', {}, { timeoutMs: 1 }).catch((error: PmqClientError) => error.code)
  return { failures, closed, ask, close }
}

suite('of several servers', () => {
  test('one is used for all requests, and clients begin with different ones', async () => {
    for (const [chance, name] of [
      [0, 'a'],
      [0.5, 'b'],
      [0.99, 'c'],
    ] as const) {
      const { ask } = setUp(3, () => chance)
      assert.deepEqual([await ask(), await ask(), await ask()], [name, name, name])
    }
  })

  test('one that fails is left, and the next one is stayed with, also when the first one works again', async () => {
    const { ask, failures } = setUp()
    failures.set('a', away)
    assert.deepEqual([await ask(), await ask()], ['unreachable', 'b'])
    failures.clear()
    assert.equal(await ask(), 'b')
  })

  test('one that failed is not used before the others have failed too, and then again in its turn', async () => {
    const { ask, failures } = setUp()
    failures.set('a', away)
    await ask()
    failures.clear()
    assert.equal(await ask(), 'b')
    failures.set('b', away)
    assert.deepEqual([await ask(), await ask()], ['unreachable', 'c'])
    failures.set('c', away)
    assert.deepEqual([await ask(), await ask(), await ask()], ['unreachable', 'a', 'a'])
  })

  test('while all fail, they are tried in turn', async () => {
    const { ask, failures } = setUp()
    for (const name of 'abc') failures.set(name, away)
    for (let count = 0; count < 3; count++) await ask()
    failures.delete('b')
    assert.deepEqual([await ask(), await ask(), await ask()], ['unreachable', 'b', 'b'])
  })

  test('of many requests that fail together the first alone moves the others', async () => {
    const { ask, failures } = setUp()
    failures.set('a', away)
    const all = await Promise.all([ask(), ask(), ask(), ask(), ask()])
    assert.deepEqual(all, new Array(5).fill('unreachable'))
    assert.equal(await ask(), 'b')
  })

  const leaves: [string, PmqClientError][] = [
    ['that cannot be reached', away],
    ['that loses the connection', failure('connection_lost')],
    ['that does not answer in time', failure('timeout')],
    ['behind a gateway that answers 502', failure('unavailable', 502)],
    ['that answers 503', failure('unavailable', 503)],
    ['behind a gateway that answers 504', failure('unavailable', 504)],
  ]
  for (const [what, error] of leaves) {
    test(`one ${what} is left`, async () => {
      const { ask, failures } = setUp()
      failures.set('a', error)
      assert.deepEqual([await ask(), await ask()], [error.code, 'b'])
    })
  }

  const stays: [string, PmqClientError][] = [
    ['status 429', failure('throttled', 429)],
    ['status 500', failure('internal', 500)],
    ['status 403', failure('unexpected_status', 403)],
    ['what is not JSON', failure('bad_answer', 200)],
    ['a request that its caller gives up, such as a held pull', failure('aborted')],
  ]
  for (const [what, error] of stays) {
    test(`${what} is no reason to leave one`, async () => {
      const { ask, failures } = setUp()
      failures.set('a', error)
      await ask()
      failures.clear()
      assert.equal(await ask(), 'a')
    })
  }

  test('all are closed together', () => {
    const { close, closed } = setUp()
    close()
    assert.deepEqual(closed, ['a', 'b', 'c'])
  })
})

suite('a client of several servers', () => {
  /** The fake service behind servers that fail as told. */
  function connect(clock: ManualClock, service: FakeService, faults: (server: number) => Fault | undefined) {
    const servers = [0, 1].map((server): HttpTransport => {
      return {
        async call(path, request, options) {
          const fault = faults(server)
          service.onRequest = operation => (operation === 'publish' ? fault : undefined)
          return service.transport(path, request, options)
        },
        endIdle: () => undefined,
        close: () => undefined,
      }
    })
    const { call } = createFailover(servers, () => 0)
    return createClient({ transport: call, clock, random: seededRandom(1), onEvent: () => undefined })
  }

  test('stores once what it sent to one, of which it had no answer, and then to another', async () => {
    const clock = createManualClock()
    const service = createFakeService(clock)
    service.log.createTopic('orders', 4)
    const client = connect(clock, service, server => (server === 0 ? { kind: 'lose_answer' } : undefined))
    const published = client.publish('orders', { body: 'a' })
    await clock.advance(1_000)
    await published
    assert.deepEqual(
      service.requests.filter(({ operation }) => operation === 'publish').map(({ request }) => request.attempt),
      [1, 2],
    )
    assert.equal(service.log.stored('orders').length, 1)
    await client.close()
  })

  test('keeps the order of a key while both fail in turn', async () => {
    const clock = createManualClock()
    const service = createFakeService(clock)
    service.log.createTopic('orders', 4)
    const chance = seededRandom(7)
    const kinds = ['lose_answer', 'lose_request', 'unreachable'] as const
    const client = connect(clock, service, () => {
      const kind = kinds[Math.floor(chance() * 6)]
      return kind && { kind }
    })
    const bodies = Array.from({ length: 200 }, (_, index) => `${index}`)
    const all = bodies.map(async body => {
      const published = client.publish('orders', { body, key: 'k' })
      if (Number(body) % 5 === 0) await settle()
      return published
    })
    await clock.advance(20_000)
    await Promise.all(all)
    assert.deepEqual(
      service.log.stored('orders').map(({ message }) => message.body),
      bodies,
    )
    await client.close()
  })

  test('finds the one that works among names that do not exist, closed ports and what speaks no TLS', async () => {
    const server = createServer((incoming, outgoing) => {
      incoming.resume()
      const offsets = [{ first: 0, count: 1, queueId: 1, offset: 1 }]
      outgoing.end(JSON.stringify({ suc: true, sleepTime: 0, topicQueues: { orders: [1] }, offsets }))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const secret = 'key-4711'
    const url = [
      `http://no-such-host.invalid/${secret}`,
      `https://127.0.0.1:${port}/${secret}`,
      `http://127.0.0.1:1/${secret}`,
      `http://127.0.0.1:${port}/${secret}`,
    ]
    const told: string[] = []
    await using client = createClient({
      url,
      random: () => 0,
      onEvent: event => void (event.type === 'request_failed' && told.push(`${event.error.code} ${event.error.stack}`)),
    })
    assert.deepEqual(await client.publish('orders', { body: 'a' }), { queueId: 1, offset: 1 })
    assert.deepEqual(
      told.map(text => text.split(' ')[0]),
      ['unreachable', 'unreachable', 'unreachable'],
    )
    assert.ok(!told.join().includes(secret))
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
})
