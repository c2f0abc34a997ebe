import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { lambdaConsumer } from '../../sdk/src/lambda/lambda-consumer.ts'
import { endpointAt, passTime, recorder, setUp } from './lambda-setup.ts'

let scene: Awaited<ReturnType<typeof setUp>>
let server: Server
let url: string
/** Claims that came over the network. */
let claims: number
/** What happens to a request's connection before it is answered. */
let isLost: (name: string) => boolean

beforeEach(async () => {
  scene = await setUp()
  claims = 0
  isLost = () => false
  server = createServer(async (incoming, outgoing) => {
    const name = endpointAt(incoming.url ?? '')
    let text = ''
    for await (const chunk of incoming.setEncoding('utf8')) text += chunk
    if (name === 'claimQueues') claims++
    if (isLost(name)) return incoming.socket.destroy()
    const reply = await scene.service.send(name, text)
    outgoing.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.text)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
  await scene.service.close()
})

const connections = () =>
  new Promise<number>((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })

describe('over HTTP', () => {
  test('an invocation leaves no connection behind that could die while the process is frozen', async () => {
    const { seen, handler } = recorder()
    const invoke = lambdaConsumer({ url, groupName: 'billing', topics: { orders: handler }, onEvent: () => {} })
    assert.deepEqual(
      process.getActiveResourcesInfo().filter(kind => kind === 'TCPSocketWrap'),
      [],
    )
    for (let round = 1; round <= 3; round++) {
      await scene.publish(['a', 'b'])
      assert.equal((await invoke()).handled, 2)
      while ((await connections()) > 0) await new Promise(setImmediate)
    }
    assert.equal(seen.length, 6)
  })

  test('a connection that dies under a pull or a commit is replaced, and nothing is lost or repeated', async () => {
    const { seen, handler } = recorder()
    const lost = new Set(['pullData', 'commitOffset'])
    isLost = name => lost.delete(name)
    const invoke = lambdaConsumer({ url, groupName: 'billing', topics: { orders: handler }, onEvent: () => {} })
    await scene.publish(['a', 'b'])
    assert.equal((await invoke()).handled, 2)
    assert.equal(seen.length, 2)
    assert.deepEqual(await scene.committed(), [2, 0])
  })

  test('a service that is not there makes the invocation reject', async () => {
    const invoke = lambdaConsumer({
      url: 'http://127.0.0.1:1',
      groupName: 'billing',
      topics: { orders: () => undefined },
      timeLimitMs: 1_000,
      reserveMs: 800,
      onEvent: () => {},
    })
    await assert.rejects(invoke(), { code: 'unreachable' })
    assert.equal(claims, 0)
  })
})

test('queues of a claim whose answer was lost are claimed again by the same invocation', async () => {
  const { lambda, publish } = scene
  await publish(['a'])
  const unlucky = lambda()
  let faults = 1
  unlucky.network.fault = () => (faults-- > 0 ? 'lost answer' : undefined)
  assert.deepEqual(await unlucky.invoke(20_000), { handled: 1, failed: 0, queues: 1, isDrained: true })
})

test('queues of a claim whose answer never came are free when the time of the invocation would have been up', async () => {
  const { lambda, publish, service } = scene
  await publish(['a'])
  const killed = lambda()
  killed.network.fault = ({ name }) => {
    if (name === 'claimQueues') killed.network.isCut = true
    return 'lost answer'
  }
  await assert.rejects(killed.invoke(20_000))
  assert.equal((await lambda().invoke(5_000)).handled, 0)
  await passTime(service, 20_000, 1_000)
  assert.equal((await lambda().invoke(20_000)).handled, 1)
})
