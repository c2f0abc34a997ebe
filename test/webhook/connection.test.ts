import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { localTargets, publicTargets } from '../../core/notify/network-policy.ts'
import { refuseTargetUrl } from '../../core/notify/target-url.ts'
import { openSender, requestTo, serveHttp } from './hooks.ts'

/** What a name may resolve to that no target is at. */
const refusedAddresses = [
  '127.0.0.1',
  '10.0.0.1',
  '172.16.0.1',
  '192.168.0.1',
  '100.64.0.1',
  '169.254.169.254',
  '0.0.0.0',
  '224.0.0.1',
  '255.255.255.255',
  '::1',
  '::',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:10.0.0.1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  '2001:0:7f00:1::',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%lo',
  'fec0::1',
  'ff02::1',
  'not an address',
]

suite('at the connection', () => {
  for (const address of refusedAddresses) {
    test(`a name that resolves to ${address} is refused, also beside a public address, whichever comes first`, async () => {
      for (const addresses of [[address], [address, '8.8.8.8'], ['8.8.8.8', address], ['2606:4700::1111', address]]) {
        const sender = openSender({ policy: publicTargets, resolve: async () => addresses })
        const answer = await sender.send(requestTo('https://hooks.example.com/'))
        assert.equal(answer.outcome, 'not_sent')
        assert.match(
          'error' in answer ? answer.error : '',
          /^hooks.example.com has (a private address|an address that)/,
        )
        assert.doesNotMatch(
          'error' in answer ? answer.error : '',
          /\d+\.\d+\.\d+/,
          'tells what a private name server says',
        )
      }
    })
  }

  test('a name that led elsewhere when the target was made, and at the look-up before, is looked at anew', async () => {
    const hits: unknown[] = []
    const server = await serveHttp((incoming, outgoing) => {
      hits.push(incoming.url)
      outgoing.setHeader('connection', 'close').end()
    })
    // Here this machine stands for what is allowed; what a name is bound to later is never allowed.
    const answers = ['127.0.0.1', '169.254.169.254', '127.0.0.1', '0.0.0.0']
    const sender = openSender({ resolve: async () => [answers.shift() ?? assert.fail()] })
    const url = `http://hooks.example.com:${server.port}/`
    assert.equal(refuseTargetUrl(url, localTargets), undefined)
    const outcomes = []
    for (let time = 0; time < 4; time++) outcomes.push((await sender.send(requestTo(url))).outcome)
    assert.deepEqual(outcomes, ['answered', 'not_sent', 'answered', 'not_sent'])
    assert.equal(hits.length, 2)
  })

  test('the address that was looked at is the one that is connected to: one look-up for each connection', async () => {
    let lookups = 0
    const server = await serveHttp((_, outgoing) => outgoing.setHeader('connection', 'close').end())
    const sender = openSender({
      resolve: async () => (++lookups === 1 ? ['127.0.0.1'] : ['169.254.169.254']),
    })
    const answer = await sender.send(requestTo(`http://hooks.example.com:${server.port}/`))
    assert.equal(answer.outcome, 'answered')
    assert.equal(lookups, 1)
  })

  test('a name without an address, and one whose look-up fails or does not end, has nothing sent', async () => {
    const controller = new AbortController()
    const none = await openSender({ resolve: async () => [] }).send(requestTo('https://a.example.com/'))
    const failed = await openSender({
      resolve: async () => {
        throw new Error('queryA ENOTFOUND a.example.com')
      },
    }).send(requestTo('https://a.example.com/'))
    const endless = openSender({
      resolve: () => {
        queueMicrotask(() => controller.abort())
        return new Promise(() => undefined)
      },
    }).send(requestTo('https://a.example.com/', { signal: controller.signal }))
    assert.deepEqual(none, { outcome: 'not_sent', error: 'a.example.com has no address' })
    assert.deepEqual(failed, { outcome: 'not_sent', error: 'queryA ENOTFOUND a.example.com' })
    assert.deepEqual(await endless, { outcome: 'not_sent', error: 'it was given up' })
  })

  test('a second address is tried where nobody listens at the first', async () => {
    const server = await serveHttp((_, outgoing) => outgoing.end('here'))
    const sender = openSender({ resolve: async () => ['127.0.0.2', '127.0.0.1'] })
    const answer = await sender.send(requestTo(`http://hooks.example.com:${server.port}/`))
    assert.deepEqual(answer, { outcome: 'answered', status: 200, body: 'here', isCut: false })
  })

  test('one of PMQ’s clients is called in its network, and is no way to any other address', async () => {
    const hits: unknown[] = []
    const server = await serveHttp((incoming, outgoing) => {
      hits.push(incoming.url)
      outgoing.end()
    })
    const resolve = async () => assert.fail('a name was looked up')
    const call = (callbackNetworks: string[], path: string) =>
      openSender({ policy: { ...publicTargets, callbackNetworks }, resolve }).send(
        requestTo(`http://127.0.0.1:${server.port}${path}`),
      )
    assert.equal((await call(['127.0.0.0/8'], '/mq/client/notify')).outcome, 'answered')
    assert.equal((await call(['127.0.0.0/8'], '/mq/client/rs')).outcome, 'not_sent')
    assert.equal((await call(['10.0.0.0/8'], '/mq/client/notify')).outcome, 'not_sent')
    assert.equal((await call([], '/mq/client/notify')).outcome, 'not_sent')
    assert.deepEqual(hits, ['/mq/client/notify'])
  })
})

suite('redirects', () => {
  for (const status of [300, 301, 302, 303, 307, 308]) {
    test(`${status} is an answer, and nothing is followed`, async () => {
      const hits: unknown[] = []
      const inside = await serveHttp((incoming, outgoing) => {
        hits.push(incoming.url)
        outgoing.end('inside')
      })
      const server = await serveHttp((_, outgoing) => outgoing.writeHead(status, { location: inside.url }).end('moved'))
      const answer = await openSender().send(requestTo(server.url))
      assert.deepEqual(answer, { outcome: 'answered', status, body: 'moved', isCut: false })
      assert.deepEqual([hits.length, inside.connections()], [0, 0])
    })
  }
})

suite('what is said', () => {
  test('names the host of the URL and nothing of this machine', async () => {
    let seen: unknown
    let headers: string[] = []
    const server = await serveHttp(async (incoming, outgoing) => {
      let body = ''
      for await (const chunk of incoming) body += chunk
      headers = incoming.rawHeaders.filter((_, index) => index % 2 === 0).map(name => name.toLowerCase())
      const { host, 'content-type': type, 'user-agent': agent } = incoming.headers
      seen = { method: incoming.method, url: incoming.url, host, type, agent, body }
      outgoing.end()
    })
    await openSender().send(requestTo(`http://Hooks.Example.com:${server.port}/a%20b?c=d`, { body: '{"ü":1}' }))
    assert.deepEqual(seen, {
      method: 'POST',
      url: '/a%20b?c=d',
      host: `hooks.example.com:${server.port}`,
      type: 'application/json',
      agent: 'pmq-serverless-webhook',
      body: '{"ü":1}',
    })
    const expected =
      'host webhook-id webhook-timestamp webhook-signature content-type user-agent content-length connection'
    assert.deepEqual(headers, expected.split(' '))
  })

  test('goes to no proxy that the environment names', async () => {
    const proxy = await serveHttp((_, outgoing) => outgoing.end('proxy'))
    const server = await serveHttp((_, outgoing) => outgoing.end('target'))
    const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY']
    const proxies = Object.fromEntries(names.map(name => [name, `http://127.0.0.1:${proxy.port}`]))
    const program = `
      import http from 'node:http'
      import { localTargets } from './core/notify/network-policy.ts'
      import { createWebhookSender } from './functions/edge/webhook/sender.ts'
      const sender = createWebhookSender(localTargets)
      const request = { secrets: [], deliveryId: 'd', body: '', timeoutMs: 60000, maxAnswerBytes: 100 }
      const { body } = await sender.send({ ...request, url: '${server.url}' })
      sender.close()
      const plain = await new Promise(resolve => http.get('${server.url}', resolve))
      process.stdout.write([body, (await plain.toArray()).join('')].join())
    `
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
      env: { ...process.env, ...proxies, NODE_USE_ENV_PROXY: '1', NODE_NO_WARNINGS: '1' },
    })
    // The second is what others of the same process get.
    assert.equal(stdout, 'target,proxy')
  })
})
