import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import tls from 'node:tls'
import { openSender, requestTo, serveHttp, serveHttps, serveSockets } from './hooks.ts'

const fixture = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url), 'utf8')
/** Of hooks.example.com; made for these tests, signed by itself, for a hundred years. */
const certificate = { key: fixture('key.pem'), cert: fixture('certificate.pem') }

suite('over TLS', () => {
  // Tests of one file run in order: only the last one trusts the certificate.
  test('a certificate that nobody vouches for has nothing sent, also where the environment would have it', async t => {
    let requests = 0
    const server = await serveHttps((_, outgoing) => {
      requests++
      outgoing.end()
    }, certificate)
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    t.after(() => {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    })
    const answer = await openSender().send(requestTo(`https://hooks.example.com:${server.port}/`))
    assert.equal(answer.outcome, 'not_sent')
    assert.match('error' in answer ? answer.error : '', /^self-signed certificate/)
    assert.deepEqual([server.connections(), requests], [1, 0])
  })

  test('a server that speaks no TLS, ends the handshake or never finishes it has nothing sent', async () => {
    const controller = new AbortController()
    const plain = await serveHttp((_, outgoing) => outgoing.end())
    const silent = await serveSockets(socket => socket.on('data', () => controller.abort()))
    const ending = await serveSockets(socket => socket.on('data', () => socket.destroy()))
    const { signal } = controller
    const outcomes = [plain, ending, silent].map(async ({ port }) => {
      const { outcome } = await openSender().send(requestTo(`https://hooks.example.com:${port}/`, { signal }))
      return outcome
    })
    assert.deepEqual(await Promise.all(outcomes), ['not_sent', 'not_sent', 'not_sent'])
  })

  test('a certificate must be of the name in the URL', async t => {
    const trusted = tls.getCACertificates('default')
    tls.setDefaultCACertificates([...trusted, certificate.cert])
    t.after(() => tls.setDefaultCACertificates(trusted))
    const hits: unknown[] = []
    const server = await serveHttps((incoming, outgoing) => {
      hits.push([incoming.headers.host, 'servername' in incoming.socket && incoming.socket.servername])
      outgoing.end('secure')
    }, certificate)
    const sender = openSender()
    const right = await sender.send(requestTo(`https://hooks.example.com:${server.port}/`))
    const again = await sender.send(requestTo(`https://hooks.example.com:${server.port}/`))
    const wrong = await sender.send(requestTo(`https://other.example.com:${server.port}/`))
    const address = await sender.send(requestTo(`https://127.0.0.1:${server.port}/`))
    assert.deepEqual(right, { outcome: 'answered', status: 200, body: 'secure', isCut: false })
    assert.deepEqual(again, right)
    assert.equal(wrong.outcome, 'not_sent')
    assert.match('error' in wrong ? wrong.error : '', /does not match certificate/)
    assert.equal(address.outcome, 'not_sent')
    const seen = [`hooks.example.com:${server.port}`, 'hooks.example.com']
    assert.deepEqual(hits, [seen, seen])
    assert.equal(server.connections(), 3)
  })
})
