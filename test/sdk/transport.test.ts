import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, beforeEach, mock, suite, test } from 'node:test'
import { inspect } from 'node:util'
import { systemClock } from '../../core/protocol/clock.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import { createHttpTransport, type HttpTransport } from '../../sdk/src/transport.ts'

type Answer = (incoming: IncomingMessage, outgoing: ServerResponse, body: string) => void

suite('the HTTP transport', () => {
  let server: Server
  let url: string
  let answer: Answer
  let sockets: Set<Socket>
  let transports: HttpTransport[]

  beforeEach(async () => {
    sockets = new Set()
    transports = []
    answer = (_, outgoing) => outgoing.end('{"suc":true}')
    server = createServer(async (incoming, outgoing) => {
      let body = ''
      for await (const chunk of incoming.setEncoding('utf8')) body += chunk
      answer(incoming, outgoing, body)
    })
    server.on('connection', socket => sockets.add(socket))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })

  afterEach(async () => {
    mock.timers.reset()
    for (const transport of transports) transport.close()
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })

  function create(options: { url?: string; maxAnswerBytes?: number; headers?: Record<string, string> } = {}) {
    const transport = createHttpTransport({ url, maxAnswerBytes: 100_000, headers: {}, clock: systemClock, ...options })
    transports.push(transport)
    return transport
  }

  async function failureOf(call: Promise<unknown>): Promise<PmqClientError> {
    const thrown = await call.then(
      () => assert.fail('resolved'),
      (error: unknown) => error,
    )
    assert.ok(thrown instanceof PmqClientError, String(thrown))
    return thrown
  }

  const call = (transport: HttpTransport, signal?: AbortSignal) =>
    transport.call('/api/ping', { a: 1 }, { timeoutMs: 1_000, signal })

  test('posts JSON behind the base path and brings the answer', async () => {
    let seen: unknown
    answer = (incoming, outgoing, body) => {
      const { method, headers } = incoming
      seen = { method, url: incoming.url, type: headers['content-type'], authorization: headers.authorization, body }
      outgoing.end('{"suc":true,"text":"€"}')
    }
    const transport = create({ url: `${url}/base/`, headers: { Authorization: 'Bearer k', 'Content-Length': '7' } })
    assert.deepEqual(await transport.call('/api/ping', { text: 'ü👩' }, { timeoutMs: 1_000 }), { suc: true, text: '€' })
    assert.deepEqual(seen, {
      method: 'POST',
      url: '/base/api/ping',
      type: 'application/json',
      authorization: 'Bearer k',
      body: '{"text":"ü👩"}',
    })
  })

  test('uses one connection for requests that follow each other', async () => {
    const transport = create()
    for (let count = 0; count < 5; count++) await call(transport)
    assert.equal(sockets.size, 1)
  })

  test('gives up after timeoutMs and destroys the socket', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const arrived = new Promise<IncomingMessage>(resolve => {
      answer = resolve
    })
    const failed = failureOf(call(create()))
    const { socket } = await arrived
    const closed = once(socket, 'close')
    mock.timers.tick(1_000)
    const error = await failed
    assert.deepEqual([error.code, error.retryable, error.inDoubt], ['timeout', true, true])
    await closed
  })

  test('the time counts until the end of the answer', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const arrived = new Promise<void>(resolve => {
      answer = (_, outgoing) => {
        outgoing.write('{"suc":')
        resolve()
      }
    })
    const failed = failureOf(call(create()))
    await arrived
    mock.timers.tick(1_000)
    assert.equal((await failed).code, 'timeout')
  })

  test('gives up when the signal aborts, before and during the request', async () => {
    const arrived = new Promise<void>(resolve => {
      answer = () => resolve()
    })
    const transport = create()
    const abort = new AbortController()
    const failed = failureOf(call(transport, abort.signal))
    await arrived
    abort.abort()
    assert.equal((await failed).code, 'aborted')
    assert.equal((await failureOf(call(transport, abort.signal))).code, 'aborted')
  })

  const statuses: [number, string | undefined, string, boolean, boolean][] = [
    [400, '{"code":"bad_request","message":"no"}', 'bad_request', false, false],
    [401, '{"message":"Unauthorized"}', 'unexpected_status', false, false],
    [404, '<html>', 'not_found', false, false],
    [413, undefined, 'payload_too_large', false, false],
    [429, '{"message":"Too Many Requests"}', 'throttled', true, false],
    [500, '{"code":"internal","message":"m","requestId":"r1"}', 'internal', true, true],
    [502, '<html>bad gateway</html>', 'unavailable', true, true],
    [503, '{"code":"unavailable","message":"m"}', 'unavailable', true, true],
    [504, undefined, 'unavailable', true, true],
    [302, undefined, 'unexpected_status', false, false],
    [418, '{"code":"toString"}', 'unexpected_status', false, false],
  ]
  for (const [status, body, code, retryable, inDoubt] of statuses) {
    test(`status ${status} is ${code}${retryable ? ', to be tried again' : ''}`, async () => {
      answer = (_, outgoing) => outgoing.writeHead(status, { 'retry-after': '2', location: '/x' }).end(body)
      const error = await failureOf(call(create()))
      assert.deepEqual(
        [error.code, error.retryable, error.inDoubt, error.status, error.retryAfterMs],
        [code, retryable, inDoubt, status, 2_000],
      )
      if (body?.includes('r1')) assert.equal(error.requestId, 'r1')
    })
  }

  test('Retry-After may be a date', async () => {
    answer = (_, outgoing) =>
      outgoing.writeHead(429, { 'retry-after': new Date(Date.now() + 60_000).toUTCString() }).end()
    const { retryAfterMs } = await failureOf(call(create()))
    assert.ok(retryAfterMs !== undefined && retryAfterMs > 50_000 && retryAfterMs <= 60_000)
  })

  test('no Retry-After is longer than a minute', async () => {
    for (const header of ['86400', '9999999999', new Date(Date.now() + 86_400_000).toUTCString()]) {
      answer = (_, outgoing) => outgoing.writeHead(429, { 'retry-after': header }).end()
      assert.equal((await failureOf(call(create()))).retryAfterMs, 60_000)
    }
  })

  const spoilt: [string, Answer, string][] = [
    ['is not JSON', (_, outgoing) => outgoing.end('<html>'), 'bad_answer'],
    ['is empty', (_, outgoing) => outgoing.end(), 'bad_answer'],
    ['is too large', (_, outgoing) => outgoing.end(`"${'x'.repeat(200_000)}"`), 'bad_answer'],
    [
      'is cut off',
      (_, outgoing) => {
        outgoing.writeHead(200, { 'content-length': '100' }).write('{"suc":')
        setImmediate(() => outgoing.destroy())
      },
      'connection_lost',
    ],
    ['is a closed connection', incoming => incoming.socket.destroy(), 'connection_lost'],
    ['is a reset connection', incoming => incoming.socket.resetAndDestroy(), 'connection_lost'],
    ['is no HTTP', incoming => incoming.socket.end('hello\r\n\r\n'), 'connection_lost'],
  ]
  for (const [what, spoil, code] of spoilt) {
    test(`an answer that ${what} is ${code}, and the next request works`, async () => {
      const transport = create()
      answer = spoil
      const error = await failureOf(call(transport))
      assert.deepEqual([error.code, error.retryable], [code, true])
      answer = (_, outgoing) => outgoing.end('{"suc":true}')
      assert.deepEqual(await call(transport), { suc: true })
    })
  }

  test('a service that is away is unreachable, and nothing was sent', async () => {
    const transport = create()
    await new Promise(resolve => server.close(resolve))
    const error = await failureOf(call(transport))
    assert.deepEqual([error.code, error.retryable, error.inDoubt], ['unreachable', true, false])
    assert.ok(error.cause instanceof Error)
  })

  test('a name that does not exist is unreachable', async () => {
    const error = await failureOf(call(create({ url: 'http://no-such-host.invalid' })))
    assert.equal(error.code, 'unreachable')
  })

  const handshakes: [string, () => void][] = [
    ['speaks no TLS', () => undefined],
    ['hangs up before TLS stands', () => server.on('connection', socket => socket.destroy())],
  ]
  for (const [what, prepare] of handshakes) {
    test(`a service that ${what} is unreachable, and nothing was sent`, async () => {
      prepare()
      const error = await failureOf(call(create({ url: url.replace('http:', 'https:') })))
      assert.deepEqual([error.code, error.retryable, error.inDoubt], ['unreachable', true, false])
    })
  }

  test('errors tell neither the base path, which may hold a key, nor what was sent', async () => {
    answer = (_, outgoing) => outgoing.writeHead(500).end()
    const { message } = await failureOf(call(create({ url: `${url}/key-123` })))
    assert.match(message, /127\.0\.0\.1:\d+\/api\/ping answered 500/)
    assert.doesNotMatch(message, /key-123/)
  })

  const unreadable: [string, Answer][] = [
    ['is not JSON', (_, outgoing) => outgoing.end('{"suc":true,"body":"secret')],
    ['is no HTTP', incoming => incoming.socket.end('secret\r\n\r\n')],
  ]
  for (const [what, spoil] of unreadable) {
    test(`an error of an answer that ${what} does not quote it, which may be a message`, async () => {
      answer = spoil
      const text = inspect(await failureOf(call(create())), { depth: 5 })
      assert.doesNotMatch(text, /secret|73 65 63 72 65 74/)
    })
  }

  test('closing ends requests under way and refuses later ones', async () => {
    const arrived = new Promise<void>(resolve => {
      answer = () => resolve()
    })
    const transport = create()
    const failed = failureOf(call(transport))
    await arrived
    transport.close()
    assert.equal((await failed).code, 'closed')
    assert.equal((await failureOf(call(transport))).code, 'closed')
  })

  test('many requests under way do not wait for each other', async () => {
    const held: ServerResponse[] = []
    const all = new Promise<void>(resolve => {
      answer = (_, outgoing) => {
        if (held.push(outgoing) === 100) resolve()
      }
    })
    const transport = create()
    const calls = Array.from({ length: 100 }, () => call(transport))
    await all
    for (const outgoing of held) outgoing.end('{"suc":true}')
    await Promise.all(calls)
  })
})
