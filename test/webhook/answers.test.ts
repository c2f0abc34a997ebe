import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { openSender, requestTo, serveHttp, serveRaw, serveSockets, until } from './hooks.ts'

const answerTo = async (url: string, maxAnswerBytes = 1_000) => openSender().send(requestTo(url, { maxAnswerBytes }))

suite('an answer', () => {
  for (const status of [200, 204, 299, 304, 400, 410, 429, 500, 503]) {
    test(`of ${status} is an answer`, async () => {
      const server = await serveHttp((_, outgoing) => outgoing.writeHead(status).end())
      assert.deepEqual(await answerTo(server.url), { outcome: 'answered', status, body: '', isCut: false })
    })
  }

  const waits: [header: string, retryAfterMs: number | undefined][] = [
    ['120', 120_000],
    ['0', 0],
    ['-5', -5_000],
    ['1e999', undefined],
    ['soon', undefined],
  ]
  for (const [header, retryAfterMs] of waits) {
    test(`may say when to come again: ${header}`, async () => {
      const server = await serveHttp((_, outgoing) => outgoing.writeHead(503, { 'retry-after': header }).end())
      const answer = await answerTo(server.url)
      assert.equal('retryAfterMs' in answer ? answer.retryAfterMs : undefined, retryAfterMs)
    })
  }

  test('as long as may be read is whole; one byte more, and it is cut and the connection ended', async () => {
    const server = await serveHttp((incoming, outgoing) => outgoing.end('a'.repeat(Number(incoming.url?.slice(1)))))
    const sender = openSender()
    const send = (length: number) =>
      sender.send(requestTo(`http://127.0.0.1:${server.port}/${length}`, { maxAnswerBytes: 10 }))
    assert.deepEqual(await send(10), { outcome: 'answered', status: 200, body: 'a'.repeat(10), isCut: false })
    assert.equal(server.open(), 1)
    assert.deepEqual(await send(11), { outcome: 'answered', status: 200, body: 'a'.repeat(10), isCut: true })
    await until(() => server.open() === 0)
  })

  test('of 10 MB, or without an end, is read as far as is asked for', async () => {
    let sent = 0
    const chunk = Buffer.alloc(64 * 1024, 'a')
    const endless = await serveHttp((_, outgoing) => {
      const write = () => {
        do sent += chunk.length
        while (!outgoing.destroyed && outgoing.write(chunk))
      }
      outgoing.on('drain', write)
      write()
    })
    const large = await serveHttp((_, outgoing) => outgoing.end(Buffer.alloc(10 * 1024 * 1024, 'a')))
    for (const { url, open } of [endless, large]) {
      assert.deepEqual(await answerTo(url), { outcome: 'answered', status: 200, body: 'a'.repeat(1_000), isCut: true })
      await until(() => open() === 0)
    }
    assert.ok(sent < 50 * 1024 * 1024, `${sent} bytes were taken`)
  })

  test('that is a bomb is not unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024))
    const server = await serveHttp((_, outgoing) => outgoing.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    const answer = await answerTo(server.url, 100)
    assert.ok('body' in answer && answer.isCut)
    assert.ok(answer.body.length <= 100)
  })

  test('that is no text has replacement characters, and a character that was cut is left out', async () => {
    const bytes = Buffer.from([0, 0x61, 0xff, 0xfe, 0xc3, 0xbc])
    const server = await serveHttp((_, outgoing) => outgoing.end(bytes))
    const whole = await answerTo(server.url)
    const cut = await answerTo(server.url, 5)
    assert.deepEqual(whole, { outcome: 'answered', status: 200, body: '\u0000a\ufffd\ufffdü', isCut: false })
    assert.deepEqual(cut, { outcome: 'answered', status: 200, body: '\u0000a\ufffd\ufffd', isCut: true })
  })

  test('that comes before all of a request has been taken is one, and ends the connection', async () => {
    const heard: Socket[] = []
    const server = await serveSockets(socket => {
      socket.once('data', () => {
        heard.push(socket.pause())
        socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno')
      })
    })
    const answer = await openSender().send(requestTo(server.url, { body: 'a'.repeat(20_000_000) }))
    assert.deepEqual(answer, { outcome: 'answered', status: 413, body: 'no', isCut: false })
    let rest = 0
    heard[0]?.on('data', chunk => {
      rest += chunk.length
    })
    heard[0]?.resume()
    await until(() => server.open() === 0)
    assert.ok(rest < 19_000_000, 'all the rest was sent')
  })
})

/** What a receiver may do that has heard a request, other than to answer it. */
const noAnswers: Record<string, (socket: Socket) => void> = {
  'ends the connection': socket => socket.end(),
  'resets the connection': socket => socket.resetAndDestroy(),
  'answers with what is no HTTP': socket => socket.end('220 smtp.example.com ESMTP\r\n'),
  'answers with a part of the headers': socket => socket.end('HTTP/1.1 200 OK\r\ncontent-le'),
  'answers with headers of 20 KB': socket => socket.end(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`),
  'answers with less than it says': socket => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"suc":true}'),
  'answers with a length that is none': socket => socket.end('HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n'),
  'answers with two lengths': socket =>
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'),
  'answers with a length and in chunks': socket =>
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'),
  'ends within a chunk': socket =>
    socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{"suc":true}'),
  'ends before the last chunk': socket => socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n'),
  'answers with a chunk that is none': socket =>
    socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'),
  'wants another protocol': socket =>
    socket.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'),
}

suite('there is no answer', () => {
  for (const [what, act] of Object.entries(noAnswers)) {
    test(`from one that ${what}`, async () => {
      const server = await serveRaw(act)
      const answer = await answerTo(server.url)
      assert.equal(answer.outcome, 'no_answer', JSON.stringify(answer))
      assert.equal(server.connections(), 1)
      await until(() => server.open() === 0)
    })
  }

  /** What a receiver may do for ever; called again with each turn of the event loop. */
  const endless: Record<string, (socket: Socket, turn: number) => void> = {
    'says nothing': () => undefined,
    'has a header without an end': (socket, turn) => socket.write(turn === 0 ? 'HTTP/1.1 200 OK\r\nx: ' : 'a'),
    'tells to go on, again and again': socket => socket.write('HTTP/1.1 100 Continue\r\n\r\n'),
    drips: (socket, turn) => socket.write(turn === 0 ? 'HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n' : 'a'),
    'drips in chunks': (socket, turn) =>
      socket.write(turn === 0 ? 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n' : '1\r\na\r\n'),
    'waits behind its headers': (socket, turn) =>
      turn === 0 && socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n'),
    'waits within its body': (socket, turn) =>
      turn === 0 && socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na'),
  }
  for (const [what, act] of Object.entries(endless)) {
    test(`when its time is up, from one that ${what}`, async () => {
      let turns = 0
      const server = await serveRaw(socket => {
        const next = () => {
          if (socket.destroyed || turns === 100) return
          act(socket, turns++)
          setImmediate(next)
        }
        next()
      })
      const answer = await openSender().send(requestTo(server.url, { timeoutMs: 300 }))
      assert.deepEqual(answer, { outcome: 'no_answer', error: 'it took more than 300 ms' })
      await until(() => server.open() === 0)
    })
  }

  test('when it is given up', async () => {
    const controller = new AbortController()
    const server = await serveRaw(() => controller.abort())
    const answer = await openSender().send(requestTo(server.url, { signal: controller.signal }))
    assert.deepEqual(answer, { outcome: 'no_answer', error: 'it was given up' })
    const later = await openSender().send(requestTo(server.url, { signal: controller.signal }))
    assert.deepEqual(later, { outcome: 'not_sent', error: 'it was given up' })
  })

  test('when the sender is closed, and nothing is sent afterwards', async () => {
    const sender = openSender()
    const server = await serveRaw(() => sender.close())
    assert.equal((await sender.send(requestTo(server.url))).outcome, 'no_answer')
    assert.deepEqual(await sender.send(requestTo(server.url)), { outcome: 'not_sent', error: 'the sender was closed' })
  })
})

suite('nothing was sent', () => {
  test('where nobody listens', async () => {
    const server = await serveHttp(() => undefined)
    server.close()
    const answer = await answerTo(server.url)
    assert.deepEqual(answer, { outcome: 'not_sent', error: `connect ECONNREFUSED 127.0.0.1:${server.port}` })
  })

  test('with a secret that is none, and the error does not say what it is', async () => {
    const server = await serveHttp((_, outgoing) => outgoing.end())
    for (const secret of ['whsec_s3cret!', 'whsec_', '']) {
      const answer = await openSender().send(requestTo(server.url, { secrets: [secret] }))
      assert.deepEqual(answer, {
        outcome: 'not_sent',
        error: 'a secret of the target is no secret of Standard Webhooks',
      })
    }
    assert.equal(server.connections(), 0)
  })
})
