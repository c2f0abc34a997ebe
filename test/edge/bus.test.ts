import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, type TestContext, test } from 'node:test'
import { createEventBridgeBus } from '../../functions/edge/bus.ts'

type Answer = { status: number; body: object }

describe('the bus over EventBridge', () => {
  let server: Server
  let asked: { DetailType: string }[][]
  let answerOf: (entries: number) => Answer
  const before = { ...process.env }
  beforeEach(async () => {
    asked = []
    server = createServer(async (request, response) => {
      const text = (await request.toArray()).join('')
      const { Entries } = JSON.parse(text)
      asked.push(Entries)
      const { status, body } = answerOf(Entries.length)
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' }).end(JSON.stringify(body))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    Object.assign(process.env, {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      AWS_REGION: 'eu-west-1',
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
    })
  })
  afterEach(() => {
    process.env = { ...before }
    server.closeAllConnections()
    server.close()
  })

  const openBus = (t: TestContext) => {
    t.mock.method(console, 'error', () => {})
    const bus = createEventBridgeBus('bus')
    return (queueId: number) => bus.tell({ type: 'QueueAppended', topicName: 'orders', queueId })
  }

  test('says in one request what is told in one turn, and of each whether it was taken', async t => {
    answerOf = () => ({
      status: 200,
      body: {
        FailedEntryCount: 1,
        Entries: [{ EventId: '1' }, { ErrorCode: 'ThrottlingException' }, { EventId: '3' }],
      },
    })
    const tell = openBus(t)
    assert.deepEqual(await Promise.all([tell(1), tell(2), tell(3)]), [undefined, 'lost', undefined])
    assert.deepEqual(
      asked.map(entries => entries.length),
      [3],
    )
  })

  test('says that all was lost where it is not answered well', async t => {
    answerOf = () => ({ status: 400, body: { __type: 'AccessDeniedException', message: 'no' } })
    const tell = openBus(t)
    assert.deepEqual(await Promise.all([tell(1), tell(2)]), ['lost', 'lost'])
  })
})
