import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createClient } from '../../sdk/src/client.ts'
import type { ClientEvent } from '../../sdk/src/events.ts'
import { seededRandom } from '../support/random.ts'
import { nameOfPath } from '../wire/node-client.ts'
import { createGroup, createTopic, publish } from '../wire/scene.ts'
import { openService } from '../wire/service.ts'
import { upTo } from './consumer-setup.ts'

type Spoil = (outgoing: ServerResponse, incoming: IncomingMessage) => void

/** What may become of a request on its way, or of its answer. */
const faults: Spoil[] = [
  (_, incoming) => incoming.socket.resetAndDestroy(),
  (_, incoming) => incoming.socket.destroy(),
  outgoing => outgoing.writeHead(500).end('{"code":"internal","message":"m"}'),
  outgoing => outgoing.writeHead(503, { 'retry-after': '0' }).end(),
  outgoing => outgoing.writeHead(502).end('<html>'),
  outgoing => outgoing.writeHead(429).end('{"message":"Too Many Requests"}'),
  outgoing => outgoing.writeHead(403).end('{"message":"Forbidden"}'),
  outgoing => outgoing.end('{"suc":true,"batches":[{"offset":1,"ti'),
  outgoing => outgoing.end('<html>'),
  outgoing => outgoing.end('{"suc":true,"batches":[{}]}'),
  outgoing => {
    outgoing.writeHead(200, { 'content-length': '1000' }).write('{"suc":')
    setImmediate(() => outgoing.destroy())
  },
  // Sockets that never answer, or never to an end.
  () => undefined,
  outgoing => outgoing.write('{"suc":true,'),
]

test('a backlog is worked off over sockets on which most of 200 pulls and more fail, each in its own way', async () => {
  const queues = 8
  const batches = 12
  const chance = seededRandom(11)
  const service = openService()
  const queueIds = await createTopic(service, 't1', queues)
  await createGroup(service, 'g1', ['t1'])
  await service.call('subscribe', { threadSize: 1 }, { groupName: 'g1', topicName: 't1' })
  for (let batch = 0; batch < batches; batch++) {
    for (const queueId of queueIds) await publish(service, ['a'], queueId)
  }
  let pulls = 0
  let failed = 0
  async function serve(incoming: IncomingMessage, outgoing: ServerResponse) {
    let text = ''
    try {
      for await (const chunk of incoming.setEncoding('utf8')) text += chunk
    } catch {
      // The client has given it up.
      return
    }
    const name = nameOfPath(incoming.url ?? '')
    if (name === 'pullData' && ++pulls > 0 && chance() < 0.6) {
      failed++
      return faults[Math.floor(chance() * faults.length)]?.(outgoing, incoming)
    }
    const { status, headers, text: answer } = await service.send(name, text)
    outgoing.writeHead(status, headers).end(answer)
  }
  const served: Promise<void>[] = []
  const server = createServer((incoming, outgoing) => void served.push(serve(incoming, outgoing)))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  const events: ClientEvent[] = []
  const client = createClient({
    // A port where nobody listens, and a server that speaks no TLS: each failure of the good one leads there.
    url: [`http://127.0.0.1:${port}`, 'http://127.0.0.1:1', `https://127.0.0.1:${port}`],
    requestTimeoutMs: 250,
    // The pauses behind failures are short then.
    random: () => chance() * 0.01,
    onEvent(event) {
      events.push(event)
      throw new Error('a listener that throws')
    },
  })
  const seen: string[] = []
  const all = Promise.withResolvers<void>()
  const consumer = client.consumer({
    groupName: 'g1',
    maxPullBytes: 1,
    maxPullWaitMs: 0,
    topics: {
      t1(messages) {
        for (const { queueId, offset } of messages) seen.push(`${queueId}:${offset}`)
        if (seen.length >= queues * batches) all.resolve()
      },
    },
  })
  await consumer.start()
  await all.promise
  assert.deepEqual(
    consumer
      .status()
      .queues.filter(({ topicName }) => topicName === 't1')
      .map(({ state, position }) => [state, position]),
    new Array(queues).fill(['running', batches]),
  )
  await client.close()
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
  await Promise.all(served)
  await service.close()

  for (const queueId of queueIds) {
    const ofQueue = seen.filter(place => place.startsWith(`${queueId}:`))
    assert.deepEqual(ofQueue, upTo(queueId, batches))
  }
  assert.ok(pulls > 200 && failed > 100, `${pulls} pulls, ${failed} spoilt`)
  const codes = new Set(events.map(event => event.type === 'request_failed' && event.error.code))
  for (const code of [
    'unreachable',
    'connection_lost',
    'timeout',
    'bad_answer',
    'internal',
    'unavailable',
    'throttled',
  ])
    assert.ok(codes.has(code as never), code)
})
