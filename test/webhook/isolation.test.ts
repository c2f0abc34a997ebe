import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { systemClock } from '../../core/protocol/clock.ts'
import { openSender, requestTo, serveHttp, serveRaw, serveSockets, until } from './hooks.ts'

test('targets that hang, drip, lie and never shake hands keep no other waiting', async () => {
  const dripping = setImmediate.bind(undefined)
  const done: string[] = []
  const heard: string[] = []
  const hang = await serveRaw(() => heard.push('hang'))
  const drip = await serveRaw(socket => {
    heard.push('drip')
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n')
    const next = () => void (!socket.destroyed && socket.write('a', () => dripping(next)))
    next()
  })
  const lie = await serveRaw(socket => {
    heard.push('lie')
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"suc":true}')
  })
  const deaf = await serveSockets(socket => socket.once('data', () => heard.push('deaf')))
  const good = await serveHttp((_, outgoing) => outgoing.end('good'))
  const controller = new AbortController()
  const { signal } = controller
  const sender = openSender({
    resolve: async name => (name === 'lost.example.com' ? new Promise(() => undefined) : ['127.0.0.1']),
  })
  const maxAnswerBytes = 10_000_000
  const bad = [hang.url, drip.url, lie.url, `https://deaf.example.com:${deaf.port}/`, 'https://lost.example.com/']
  // Each of them several times: a limit on what is open would be met.
  const hanging = bad.flatMap(url =>
    Array.from({ length: 20 }, async () => {
      const answer = await sender.send(requestTo(url, { signal, maxAnswerBytes }))
      done.push(answer.outcome)
    }),
  )
  await until(() => heard.length === 80)
  const answers = await Promise.all(Array.from({ length: 20 }, () => sender.send(requestTo(good.url))))
  assert.ok(answers.every(answer => answer.outcome === 'answered' && answer.body === 'good'))
  assert.deepEqual(done, [], 'the others were to hang still')

  controller.abort()
  await Promise.all(hanging)
  assert.equal(done.filter(outcome => outcome === 'no_answer').length, 60)
  assert.equal(done.filter(outcome => outcome === 'not_sent').length, 40)
})

suite('connections', () => {
  test('are kept for the next webhook to the same origin, and four of them at most', async () => {
    let waiting: (() => void)[] = []
    const server = await serveHttp((_, outgoing) => {
      waiting.push(() => outgoing.end())
    })
    const sender = openSender()
    for (let round = 0; round < 3; round++) {
      const sending = Array.from({ length: 10 }, () => sender.send(requestTo(server.url)))
      await until(() => waiting.length === 10)
      for (const answer of waiting) answer()
      waiting = []
      await Promise.all(sending)
      await until(() => server.open() === 4)
    }
    assert.equal(server.connections(), 10 + 6 + 6)
  })

  test('are kept to 64 origins at most', async () => {
    const server = await serveHttp((_, outgoing) => outgoing.end())
    const sender = openSender()
    const names = Array.from({ length: 80 }, (_, index) => `http://h${index}.example.com:${server.port}/`)
    await Promise.all(names.map(url => sender.send(requestTo(url))))
    await until(() => server.open() <= 64)
    assert.equal(server.connections(), 80)
    await Promise.all(names.map(url => sender.send(requestTo(url))))
    assert.equal(server.connections(), 96)
  })

  test('are not kept for long, by the wall clock: a process that was frozen has missed their ends', async () => {
    let nowMs = 1_000_000
    const server = await serveHttp((_, outgoing) => outgoing.end())
    const sender = openSender({ clock: { ...systemClock, now: () => nowMs } })
    const connectionsAfter = async (passedMs: number) => {
      nowMs += passedMs
      assert.equal((await sender.send(requestTo(server.url))).outcome, 'answered')
      return server.connections()
    }
    assert.equal(await connectionsAfter(0), 1)
    assert.equal(await connectionsAfter(3_999), 1)
    assert.equal(await connectionsAfter(4_000), 2)
    assert.equal(await connectionsAfter(-10_000), 3)
  })

  test('that end just when they are used again cost nothing: the webhook goes out over another, with its id', async () => {
    const ids: string[] = []
    let requests = 0
    const server = await serveRaw((socket, request) => {
      ids.push(/webhook-id: (\S+)/.exec(request)?.[1] ?? '')
      if (++requests === 2) socket.resetAndDestroy()
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    })
    const sender = openSender()
    const first = await sender.send(requestTo(server.url, { deliveryId: 'd1' }))
    const second = await sender.send(requestTo(server.url, { deliveryId: 'd2' }))
    assert.deepEqual([first.outcome, second.outcome], ['answered', 'answered'])
    assert.deepEqual(ids, ['d1', 'd2', 'd2'])
  })

  test('that end so, with nobody there any more, may have been heard: there is no answer', async () => {
    let requests = 0
    const server = await serveRaw(socket => {
      if (++requests === 1) return socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
      server.close()
      return socket.resetAndDestroy()
    })
    const sender = openSender()
    await sender.send(requestTo(server.url))
    const answer = await sender.send(requestTo(server.url))
    assert.deepEqual(answer, { outcome: 'no_answer', error: `connect ECONNREFUSED 127.0.0.1:${server.port}` })
  })

  test('are given up when more comes on them than an answer', async () => {
    const server = await serveRaw(socket => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged')
    })
    const sender = openSender()
    for (let time = 1; time <= 3; time++) {
      const answer = await sender.send(requestTo(server.url))
      assert.equal('body' in answer && answer.body, 'a')
      await until(() => server.open() === 0)
      assert.equal(server.connections(), time)
    }
  })
})
