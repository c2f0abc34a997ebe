import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import { createNotifyReceiver } from '../../sdk/src/notify/receiver.ts'
import { hintOf } from './notify-setup.ts'

const hint = hintOf(['billing', 11])

async function withServer(
  listener: http.RequestListener,
  run: (port: number, server: http.Server) => Promise<void>,
): Promise<void> {
  const server = http.createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    await run((server.address() as AddressInfo).port, server)
  } finally {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
}

function setUp(options: { maxBodyBytes?: number } = {}) {
  const errors: unknown[] = []
  let taken = 0
  const receiver = createNotifyReceiver({
    acceptUnsigned: true,
    onNotify: () => void taken++,
    onError: error => errors.push(error),
    ...options,
  })
  return { receiver, errors, taken: () => taken }
}

/** Sends chunks without a length, and reads the status. */
async function sendChunks(port: number, chunks: Buffer[]): Promise<number | undefined> {
  const request = http.request({ port, host: '127.0.0.1', method: 'POST', agent: false })
  const answered = once(request, 'response')
  for (const chunk of chunks) request.write(chunk)
  request.end()
  const [response] = await answered
  response.resume()
  return response.statusCode
}

suite('a notify receiver behind node:http', () => {
  test('reads a body that comes in parts, and one of no told length up to its bound', async () => {
    const { receiver, taken } = setUp({ maxBodyBytes: 200 })
    await withServer(receiver.node, async port => {
      const bytes = Buffer.from(hint)
      const parts = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))
      assert.equal(await sendChunks(port, parts), 200)
      assert.equal(await sendChunks(port, [bytes, Buffer.alloc(200, ' ')]), 413)
      assert.equal(await sendChunks(port, [Buffer.alloc(200, ' '), Buffer.alloc(100_000, ' ')]), 413)
    })
    assert.equal(taken(), 1)
  })

  test('outlives a sender that goes away in the middle of a body, and goes on', async () => {
    const { receiver, errors, taken } = setUp()
    const answered: Promise<void>[] = []
    const listener: http.RequestListener = (request, response) => void answered.push(receiver.node(request, response))
    await withServer(listener, async (port, server) => {
      const socket = net.connect(port, '127.0.0.1')
      socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{"msgNotifyDtos":')
      await once(server, 'request')
      socket.destroy()
      await once(socket, 'close')
      await Promise.all(answered)
      assert.equal(await sendChunks(port, [Buffer.from(hint)]), 200)
    })
    assert.equal(taken(), 1)
    assert.deepEqual(errors, [])
  })

  test('takes the bytes that a framework has read, and says so when it has kept none', async () => {
    const { receiver, errors, taken } = setUp()
    for (const [field, status] of [
      ['body', 200],
      ['rawBody', 200],
      ['text', 400],
    ] as const) {
      const listener: http.RequestListener = async (request, response) => {
        const chunks: Buffer[] = []
        for await (const chunk of request) chunks.push(chunk)
        await receiver.node(Object.assign(request, { body: {}, [field]: Buffer.concat(chunks) }), response)
      }
      await withServer(listener, async port => assert.equal(await sendChunks(port, [Buffer.from(hint)]), status))
    }
    assert.equal(taken(), 2)
    assert.match(String(errors), /^Error: The body was read before it came to the notify receiver/)
  })

  test('leaves a response alone that somebody else has begun', async () => {
    const { receiver } = setUp()
    const listener: http.RequestListener = async (request, response) => {
      response.writeHead(202).flushHeaders()
      await receiver.node(request, response)
      response.end()
    }
    await withServer(listener, async port => assert.equal(await sendChunks(port, [Buffer.from(hint)]), 202))
  })
})
