import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Client, createClient } from 'pmq-sdk'
import { admin, setUp } from '../../demo/admin.ts'
import { freePort } from '../../rehearsal/free-port.ts'
import { checkHistory } from '../checker/check.ts'
import { createHistory, type History } from '../checker/history.ts'
import { explain } from '../checker/violation.ts'
import { dynoxide } from '../support/engines.ts'

const program = fileURLToPath(new URL('../../bin/pmq.ts', import.meta.url))

type HostProcess = { child: ChildProcess; url: string; output: () => string }

/** Starts `pmq start` as a process of its own and waits until it says where it listens, or ends. */
async function startHost(args: string[], env: NodeJS.ProcessEnv = {}): Promise<HostProcess> {
  const child = spawn(process.execPath, [program, 'start', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let text = ''
  const { promise, resolve } = Promise.withResolvers<void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (text.includes('Ctrl-C')) resolve()
    })
  }
  child.once('exit', () => resolve())
  await promise
  return { child, url: /http:\/\/[\d.]+:\d+/.exec(text)?.[0] ?? '', output: () => text }
}

async function end(
  host: HostProcess,
  signal: NodeJS.Signals,
): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  if (host.child.exitCode === null && host.child.signalCode === null) {
    const gone = once(host.child, 'exit')
    host.child.kill(signal)
    await gone
  }
  return { code: host.child.exitCode, signal: host.child.signalCode }
}

/** Reads all of a topic's queues from the start, as a group of one's own would. */
async function readAll(history: History, client: Client, url: string, topicName: string): Promise<void> {
  const topic = (await admin(url, 'GET', `/topics/${topicName}`)) as {
    queues: { queueId: number; nextOffset: number }[]
  }
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const left = new Map(topic.queues.map(queue => [queue.queueId, queue.nextOffset - 1]))
  const finishIfRead = () => [...left.values()].every(count => count === 0) && resolve()
  const consumer = client.consumer({
    groupName: 'readers',
    topics: {
      [topicName](messages, { queueId }) {
        const read = messages.map(({ offset, body }) => ({ offset, value: body }))
        const from = (read[0]?.offset ?? 1) - 1
        history.pullOk(`reader-${queueId}`, { group: 'readers', queueId, from, messages: read })
        left.set(queueId, (left.get(queueId) ?? 0) - read.length)
        finishIfRead()
      },
    },
  })
  await consumer.start()
  finishIfRead()
  await done
  await consumer.stop()
  history.drained('test', { group: 'readers' })
}

describe('the host on one machine', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pmq-host-'))
  })
  after(() => rm(folder, { recursive: true }))

  test('loses nothing and stores nothing twice when it is killed in the middle of writes and started again', async () => {
    // The host has to come back at the same one.
    const port = await freePort()
    const args = ['--port', String(port), '--dir', join(folder, 'killed')]
    let host = await startHost(args)
    await setUp(host.url, 'orders', 4, 'readers', { threadSize: 1, consumerBatchSize: 500 })
    const history = createHistory(() => performance.now())
    await using client = createClient({ url: host.url })
    // Requests of a few messages each, so that many are under way whenever the host is killed.
    const producer = client.producer({ maxBatchMessages: 5 })

    let acknowledged = 0
    const killsAt = [300, 900, 1500]
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      const name = `writer-${writer}`
      for (let n = 0; n < 250; n++) {
        const value = `${name}/${n}`
        const key = writer % 2 === 0 ? name : undefined
        const op = history.publishInvoke(name, { topic: 'orders', messages: [{ value, ...(key && { key }) }] })
        const { queueId, offset } = await producer.publish('orders', { body: value, key })
        history.publishOk(name, op, [{ value, queueId, offset }])
        acknowledged++
        if (acknowledged >= (killsAt[0] ?? Number.POSITIVE_INFINITY)) {
          killsAt.shift()
          await end(host, 'SIGKILL')
          host = await startHost(args)
        }
      }
    })
    await Promise.all(writers)
    assert.deepEqual(killsAt, [])
    await readAll(history, client, host.url, 'orders')
    await client.close()
    await end(host, 'SIGTERM')
    assert.equal(explain(checkHistory(history.events)), '')
  })

  test('refuses a folder that another host has, and says what to do', async () => {
    const dir = join(folder, 'locked')
    const first = await startHost(['--port', '0', '--dir', dir])
    const second = await startHost(['--port', '0', '--dir', dir])
    assert.equal(second.child.exitCode, 1)
    assert.match(
      second.output(),
      /locked \(--dir\) cannot be used: another host uses it; stop that one, or choose another folder/,
    )
    await end(first, 'SIGKILL')
    const third = await startHost(['--port', '0', '--dir', dir])
    assert.notEqual(third.url, '')
    await end(third, 'SIGTERM')
  })

  test('stops cleanly at Ctrl-C while pulls are held, and keeps everything', async () => {
    const dir = join(folder, 'stopped')
    const first = await startHost(['--port', '0', '--dir', dir])
    await setUp(first.url, 'orders', 1, 'readers')
    const client = createClient({ url: first.url })
    await client.publish('orders', { body: 'kept' })
    const idle = client.consumer({ groupName: 'readers', topics: { orders: () => {} } })
    await idle.start()
    const stopped = await end(first, 'SIGINT')
    assert.deepEqual(stopped, { code: 0, signal: null })
    const second = await startHost(['--port', new URL(first.url).port, '--dir', dir])
    const { queues } = (await admin(second.url, 'GET', '/topics/orders')) as { queues: { nextOffset: number }[] }
    assert.equal(queues[0]?.nextOffset, 2)
    await client.close()
    await end(second, 'SIGTERM')
  })

  test('stops and says so when its folder is deleted under it', async () => {
    const dir = join(folder, 'deleted')
    const host = await startHost(['--port', '0', '--dir', dir])
    const exited = once(host.child, 'exit')
    await rm(dir, { recursive: true })
    assert.deepEqual(await exited, [1, null])
    assert.match(host.output(), /pmq\.db was deleted or replaced while the host was running: the host stops/)
  })

  test('answers nobody but this machine: no page of another site, under whatever name', async () => {
    const host = await startHost(['--port', '0', '--dir', join(folder, 'loopback')])
    const statusOf = (headers: Record<string, string>) =>
      new Promise(resolve => {
        const request = get(`${host.url}/api/admin/topics`, { headers, agent: false }, response => {
          response.resume().on('end', () => resolve(response.statusCode))
        })
        request.on('error', resolve)
      })
    assert.equal(await statusOf({}), 200)
    assert.equal(await statusOf({ origin: host.url }), 200)
    assert.equal(await statusOf({ origin: 'https://example.com' }), 403)
    assert.equal(await statusOf({ host: 'rebound.example.com' }), 403)
    await end(host, 'SIGTERM')
  })

  test('tells whoever sends a request that is too large so, instead of breaking the connection', async () => {
    const host = await startHost(['--port', '0', '--dir', join(folder, 'large')])
    try {
      const body = 'a'.repeat(24 * 1024 * 1024)
      const answer = await fetch(`${host.url}/api/client/consumer/publish`, { method: 'POST', body })
      assert.deepEqual([answer.status, await answer.json()], [413, { message: 'Request Entity Too Large' }])
    } finally {
      await end(host, 'SIGTERM')
    }
  })

  test('says what is wrong with a port that is in use or is no number', async () => {
    const first = await startHost(['--port', '0', '--dir', join(folder, 'port')])
    const second = await startHost(['--port', new URL(first.url).port, '--dir', join(folder, 'other')])
    assert.equal(second.child.exitCode, 1)
    assert.match(second.output(), /port \d+ is in use; choose another with --port/)
    const third = await startHost(['--port', 'http', '--dir', join(folder, 'other')])
    assert.equal(third.child.exitCode, 1)
    assert.match(third.output(), /http is not a whole number from 0 to 65535/)
    await end(first, 'SIGTERM')
  })

  test('has sub-environments where it is told so, and else not', async () => {
    const nameIn = async (dir: string, ...args: string[]) => {
      const host = await startHost(['--port', '0', '--dir', join(folder, dir), ...args])
      await setUp(host.url, 'orders', 1, 'readers')
      const call = async (endpoint: string, request: object) => {
        const answer = await fetch(`${host.url}/api/client/consumer/${endpoint}`, {
          method: 'POST',
          body: JSON.stringify({ lan: 'java', sdkVersion: '5.5.1', clientIp: '10.1.1.1', ...request }),
          headers: { connection: 'close' },
        })
        return (await answer.json()) as { id?: number; consumerGroupNameNew?: Record<string, string> }
      }
      const { id } = await call('register', { name: 'a' })
      const joining = { consumerId: id, subEnv: 'Dev', consumerGroupNames: { readers: ['orders'] } }
      const { consumerGroupNameNew } = await call('registerConsumerGroup', joining)
      await end(host, 'SIGTERM')
      return consumerGroupNameNew
    }
    assert.deepEqual(await nameIn('with', '--sub-environments'), { readers: 'readers_dev' })
    assert.deepEqual(await nameIn('without'), {})
  })

  const engine = dynoxide()
  test('runs the main job on a DynamoDB endpoint', { skip: engine.skip ?? false }, async () => {
    const running = await engine.start()
    const host = await startHost(['--port', '0'], { PMQ_DYNAMODB_ENDPOINT: running.endpoint })
    await setUp(host.url, 'orders', 2, 'readers', { threadSize: 1, consumerBatchSize: 100 })
    const history = createHistory(() => performance.now())
    const client = createClient({ url: host.url })
    const values = Array.from({ length: 200 }, (_, i) => `order ${i}`)
    const op = history.publishInvoke('writer', { topic: 'orders', messages: values.map(value => ({ value })) })
    const placed = await Promise.all(
      values.map(async value => ({ value, ...(await client.publish('orders', { body: value })) })),
    )
    history.publishOk('writer', op, placed)
    await readAll(history, client, host.url, 'orders')
    await client.close()
    await end(host, 'SIGTERM')
    await running.stop()
    assert.equal(explain(checkHistory(history.events)), '')
  })
})
