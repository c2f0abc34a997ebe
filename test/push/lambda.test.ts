import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, afterEach, suite, test } from 'node:test'
import type { LambdaClient } from '@aws-sdk/client-lambda'
import { createInvoke, createLambdaClient, type LambdaClientOptions } from '../../functions/edge/push/invoke.ts'
import { serveHttp } from '../webhook/hooks.ts'
import { bodies, done, pushOf, setUp, type Told, targetAt } from './push-setup.ts'

let scene: Awaited<ReturnType<typeof setUp>>
afterEach(() => scene.service.close())

type Invoked = { path: string; headers: Record<string, unknown>; msgs: Told[] }

const clients = new Set<LambdaClient>()
after(() => {
  for (const client of clients) client.destroy()
})

/** AWS's endpoint of functions, as far as a client can tell. */
async function serveLambda(
  answer: (outgoing: ServerResponse, invoked: Invoked) => unknown,
  options: LambdaClientOptions = {},
) {
  const invoked: Invoked[] = []
  const server = await serveHttp(async (incoming, outgoing) => {
    let text = ''
    for await (const chunk of incoming.setEncoding('utf8')) text += chunk
    const call = { path: incoming.url ?? '', headers: incoming.headers, msgs: JSON.parse(text).msgs }
    invoked.push(call)
    answer(outgoing, call)
  })
  const client = createLambdaClient({
    endpoint: `http://127.0.0.1:${server.port}`,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    ...options,
  })
  clients.add(client)
  return { ...server, invoked, invoke: createInvoke(client) }
}

const target = targetAt('', { kind: 'lambda', functionName: 'bill' })
const refusal = (outgoing: ServerResponse, status: number, type: string, more: object = {}) =>
  outgoing
    .writeHead(status, { 'x-amzn-errortype': type, 'content-type': 'application/json' })
    .end(JSON.stringify({ Message: 'no', Type: 'User', ...more }))
const functionError = (outgoing: ServerResponse, payload: string) =>
  outgoing.writeHead(200, { 'x-amz-function-error': 'Unhandled' }).end(payload)

async function open(answer: Parameters<typeof serveLambda>[0], settings: object = {}) {
  scene = await setUp({ queues: 1, settings: { consumerBatchSize: 4, retryCount: 1, ...settings } })
  await scene.publish(bodies(4))
  const lambda = await serveLambda(answer)
  const { run, posts } = pushOf(scene.service, { invoke: lambda.invoke })
  return { ...lambda, posts, run: (timeLimitMs = 60_000) => run('', { target, timeLimitMs }) }
}

suite('a function', () => {
  test('is invoked with what a webhook would be sent, waited for, and its answer taken as one', async () => {
    const { run, invoked, posts } = await open(outgoing => outgoing.end(JSON.stringify({ suc: true, failIds: [2] })))
    const { nextDueAtMs, ...report } = await run()
    assert.deepEqual(report, { handled: 3, failed: 1, isDrained: true })
    const [{ path, headers, msgs } = assert.fail()] = invoked
    assert.equal(path, '/2015-03-31/functions/bill/invocations')
    assert.equal(headers['x-amz-invocation-type'], 'RequestResponse')
    assert.deepEqual(
      msgs.map(({ body, topicName }) => [body, topicName]),
      bodies(4).map(body => [body, 'orders']),
    )
    assert.deepEqual(await scene.failures(), [['m2', 1]])
    assert.equal(posts[0]?.outcome, 'done')
  })

  const failing: [what: string, (outgoing: ServerResponse) => unknown, error: RegExp][] = [
    [
      'throws',
      o => functionError(o, '{"errorType":"TypeError","errorMessage":"s3cret"}'),
      /^the function failed: TypeError$/,
    ],
    ['takes too long for itself', o => functionError(o, '{"errorType":"Sandbox.Timedout"}'), /Sandbox.Timedout$/],
    ['fails with what is no JSON', o => functionError(o, 's3cret'), /^the function failed$/],
    ['fails with an answer', o => functionError(o, JSON.stringify(done)), /^the function failed$/],
    ['returns nothing', o => o.end('null'), /no suc/],
    ['returns a text', o => o.end('"s3cret"'), /no suc/],
    ['returns 6 MB', o => o.end(JSON.stringify({ more: 'x'.repeat(6_000_000) })), /no suc/],
    ['names 100,000 ids', o => o.end(JSON.stringify({ suc: true, failIds: Array(100_000).fill(1) })), /100000 entries/],
    ['is lost on AWS’s side', o => refusal(o, 500, 'ServiceException'), /ServiceException/],
    ['is behind a gateway that is away', o => o.writeHead(504).end('<html>'), /./],
    ['has its connection broken', o => o.destroy(), /./],
  ]
  for (const [what, answer, error] of failing) {
    test(`that ${what} has made an attempt for all`, async () => {
      const { run, posts, invoked } = await open(answer)
      const { nextDueAtMs, ...report } = await run()
      assert.deepEqual(report, { handled: 0, failed: 4, isDrained: true })
      assert.match(posts[0]?.error ?? '', error)
      assert.doesNotMatch(posts[0]?.error ?? '', /s3cret/)
      assert.deepEqual(
        await scene.failures(),
        bodies(4).map(body => [body, 1]),
      )
      assert.equal(invoked.length, 1, 'it was tried again by the client')
    })
  }

  test('that does not end has made an attempt, and the run ends in time', async () => {
    const { run, posts } = await open(() => undefined)
    const { failed } = await run(1_500)
    assert.deepEqual([failed, posts[0]?.outcome], [4, 'failed'])
    assert.match(posts[0]?.error ?? '', /^the function took more than \d+ ms$/)
  })

  const refusing: [what: string, (outgoing: ServerResponse) => unknown, retryAfterMs: number][] = [
    ['is throttled', o => refusal(o, 429, 'TooManyRequestsException'), 5_000],
    ['is throttled for 20 s', o => refusal(o.setHeader('retry-after', '20'), 429, 'TooManyRequestsException'), 20_000],
    ['is not there', o => refusal(o, 404, 'ResourceNotFoundException'), 5_000],
    ['may not be invoked', o => refusal(o, 403, 'AccessDeniedException'), 5_000],
    ['has no network', o => refusal(o, 502, 'ENILimitReachedException'), 5_000],
    ['has no key', o => refusal(o, 502, 'KMSDisabledException'), 5_000],
    ['is being made', o => refusal(o, 502, 'ResourceNotReadyException'), 5_000],
  ]
  for (const [what, answer, retryAfterMs] of refusing) {
    test(`that ${what} has not been started: nothing is counted`, async () => {
      const { run, posts } = await open(answer)
      const { unavailable, ...report } = await run()
      assert.deepEqual(report, { handled: 0, failed: 0, isDrained: false })
      assert.equal(unavailable?.retryAfterMs, retryAfterMs)
      assert.equal(posts[0]?.outcome, 'not_started')
      assert.deepEqual([await scene.failures(), await scene.committed()], [[], [0]])
    })
  }

  test('of a service that cannot be reached, or that invokes none, has not been started', async () => {
    const { close, run } = await open(() => undefined)
    close()
    const { unavailable } = await run()
    assert.match(unavailable?.error ?? '', /ECONNREFUSED/)
    const { unavailable: none } = await pushOf(scene.service).run('', { target })
    assert.equal(none?.error, 'this service invokes no functions')
    assert.deepEqual([await scene.failures(), await scene.committed()], [[], [0]])
  })

  test('that no connection comes about to in time has not been started', async () => {
    scene = await setUp()
    const ending = new AbortController()
    const { invoke, invoked } = await serveLambda(() => undefined, { connectTimeoutMs: 100, maxConnections: 1 })
    const request = { functionName: 'bill', payload: '{"msgs":[]}', timeoutMs: 60_000, signal: ending.signal }
    const first = invoke(request)
    const second = await invoke(request)
    assert.equal(second.outcome, 'not_started')
    assert.equal(invoked.length, 1)
    ending.abort()
    assert.equal((await first).outcome, 'no_answer')
  })

  test('is invoked over a connection of its own each time', async () => {
    const { run, connections, posts } = await open(outgoing => outgoing.end(JSON.stringify(done)), {
      consumerBatchSize: 1,
    })
    assert.equal((await run()).handled, 4)
    assert.deepEqual([posts.length, connections()], [4, 4])
  })
})
