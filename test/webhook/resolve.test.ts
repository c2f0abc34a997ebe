import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import type { AddressInfo } from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import { createResolve, resolveLocally } from '../../functions/edge/webhook/resolve.ts'
import { openSender, requestTo, serveHttp } from './hooks.ts'

type Records = { a?: string[]; aaaa?: number[][]; silent?: ('a' | 'aaaa')[] }

/** A name server that knows these names, and a resolver that asks it. */
async function openNames(t: TestContext, names: Record<string, Records>) {
  const asked: string[] = []
  const socket = dgram.createSocket('udp4')
  socket.on('message', (query, from) => {
    const { name, end } = readName(query)
    const type = query.readUInt16BE(end) === 28 ? 'aaaa' : 'a'
    asked.push(`${type} ${name}`)
    const records = names[name]
    if (records?.silent?.includes(type)) return
    const addresses = type === 'a' ? (records?.a ?? []).map(text => text.split('.').map(Number)) : (records?.aaaa ?? [])
    socket.send(answerTo(query, end + 4, records ? 0 : 3, type === 'a' ? 1 : 28, addresses), from.port, from.address)
  })
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
  const resolver = new Resolver({ timeout: 50, tries: 1 })
  resolver.setServers([`127.0.0.1:${(socket.address() as AddressInfo).port}`])
  const { resolve, close } = createResolve(resolver)
  t.after(() => {
    close()
    socket.close()
  })
  return { resolve, close, asked }
}

function readName(query: Buffer) {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}

function answerTo(query: Buffer, end: number, code: number, type: number, addresses: number[][]): Buffer {
  const head = Buffer.from(query.subarray(0, 12))
  head.writeUInt16BE(0x8180 | code, 2)
  head.writeUInt16BE(addresses.length, 6)
  head.writeUInt16BE(0, 10)
  const records = addresses.map(bytes => {
    const fixed = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length])
    return Buffer.concat([fixed, Buffer.from(bytes)])
  })
  return Buffer.concat([head, query.subarray(12, end), ...records])
}

const loopback6 = [...Array(15).fill(0), 1]

suite('names', () => {
  test('have all addresses that name servers tell, those of IPv4 first', async t => {
    const { resolve, asked } = await openNames(t, {
      'both.example.com': { a: ['192.0.2.1', '192.0.2.2'], aaaa: [loopback6] },
      'six.example.com': { aaaa: [loopback6] },
      'half.example.com': { a: ['192.0.2.3'], silent: ['aaaa'] },
    })
    assert.deepEqual(await resolve('both.example.com'), ['192.0.2.1', '192.0.2.2', '::1'])
    assert.deepEqual(await resolve('six.example.com'), ['::1'])
    assert.deepEqual(await resolve('half.example.com'), ['192.0.2.3'])
    await assert.rejects(resolve('none.example.com'), /ENOTFOUND/)
    assert.ok(asked.includes('aaaa both.example.com') && asked.includes('a both.example.com'))
  })

  test('with a public and a private address lead nowhere, whichever kind of address that is', async t => {
    const { resolve } = await openNames(t, {
      'mixed.example.com': { a: ['8.8.8.8', '10.0.0.1'] },
      'six.example.com': { a: ['8.8.8.8'], aaaa: [loopback6] },
      'mapped.example.com': { a: ['8.8.8.8'], aaaa: [[...Array(10).fill(0), 255, 255, 127, 0, 0, 1]] },
    })
    const sender = openSender({ policy: { allowPrivate: false, allowHttp: false }, resolve })
    for (const name of ['mixed', 'six', 'mapped']) {
      const answer = await sender.send(requestTo(`https://${name}.example.com/`))
      assert.equal(answer.outcome, 'not_sent')
      assert.match('error' in answer ? answer.error : '', /example.com has an? (private )?address/)
    }
  })

  test('whose servers never answer keep no other name waiting, however many they are', async t => {
    const silent = Array.from({ length: 50 }, (_, index) => `s${index}.example.com`)
    const { resolve, close } = await openNames(t, {
      ...Object.fromEntries(silent.map(name => [name, { silent: ['a', 'aaaa'] }])),
      'good.example.com': { a: ['127.0.0.1'] },
    })
    const server = await serveHttp((_, outgoing) => outgoing.end('good'))
    const sender = openSender({ resolve })
    const ended: string[] = []
    const waiting = silent.map(async name => {
      const { outcome } = await sender.send(requestTo(`http://${name}/`))
      ended.push(outcome)
    })
    const answer = await sender.send(requestTo(`http://good.example.com:${server.port}/`))
    assert.equal('body' in answer && answer.body, 'good')
    close()
    await Promise.all(waiting)
    assert.deepEqual(ended, Array(50).fill('not_sent'))
  })

  test('of this machine are known to it where its operator allows private targets', async () => {
    assert.ok((await resolveLocally('localhost')).includes('127.0.0.1'))
    assert.deepEqual(await resolveLocally('127.0.0.1'), ['127.0.0.1'])
    const server = await serveHttp((_, outgoing) => outgoing.end('here'))
    const answer = await openSender({ resolve: resolveLocally }).send(requestTo(`http://localhost:${server.port}/`))
    assert.equal('body' in answer && answer.body, 'here')
  })
})
