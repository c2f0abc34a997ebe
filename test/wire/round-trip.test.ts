import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import fc from 'fast-check'
import { endpoints } from '../../core/protocol/endpoints.ts'
import type { PublishMessage } from '../../core/protocol/publish.ts'
import { createTopic } from './scene.ts'
import { eventFor, openService, type Service } from './service.ts'

/** What a publisher may put into a text of a message comes out as it went in, code unit by code unit. */

let service: Service
let queueId = 0
beforeEach(async () => {
  service = openService()
  queueId = (await createTopic(service, 't1'))[0] ?? 0
})
afterEach(() => service.close())

const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => String.fromCharCode(from + i)).join('')

const texts: [string, string][] = [
  ['an unfinished object', '{ac'],
  ['an apostrophe', "what's up?"],
  ['nothing', ''],
  ['blanks', ' \t\r\n '],
  ['null as a word', 'null'],
  ['a number as a word', '1e400'],
  ['JSON with __proto__', '{"__proto__":{"x":1}}'],
  ['JSON within JSON', JSON.stringify(JSON.stringify({ a: '"\\' }))],
  ['backslashes and quotes', '\\"\\\\""\\u0041'],
  ['U+0000 to U+001F', range(0x00, 0x1f)],
  ['U+007F to U+00FF', range(0x7f, 0xff)],
  ['U+2028 and U+2029', '\u2028\u2029'],
  ['U+FFFD, U+FFFE and U+FFFF', '\ufffd\ufffe\uffff'],
  ['a byte order mark', '\ufefftext\ufeff'],
  ['half a surrogate pair, high', 'a\ud800b'],
  ['half a surrogate pair, low', 'a\udfffb'],
  ['a surrogate pair the wrong way round', '\udc00\ud800'],
  ['a family', '👩‍👩‍👧‍👦'],
  ['a character beyond the basic plane', '𠮷'],
  ['right to left', 'שלום \u202eabc\u202c مرحبا'],
  ['composed', '\u00e9'],
  ['decomposed', 'e\u0301'],
  ['many brackets', '['.repeat(200_000)],
]

async function publishMessage(message: PublishMessage): Promise<void> {
  const { suc, msg } = await service.call('publish', { topicName: 't1', msgs: [message] })
  assert.equal(suc, true, msg)
}

/** The last message, by PMQ's window and by size, from the memory of the container that stored it and from the store. */
async function readEverywhere() {
  const other = openService({ store: service.core.store })
  const found = []
  for (const { call } of [service, other]) {
    const asked = { queueId, offsetStart: 0, topicName: 't1' }
    const { msgs } = await call('pullData', { ...asked, offsetEnd: 1000 })
    const { batches } = await call('pullData', { ...asked, maxBytes: 1_000_000 })
    found.push(msgs?.at(-1), batches?.at(-1)?.msgs.at(-1))
  }
  return found
}

suite('a body comes out as it went in', () => {
  for (const [what, body] of texts) {
    test(what, async () => {
      await publishMessage({ body })
      for (const message of await readEverywhere()) assert.ok(message?.body === body, `${message?.body}`)
    })
  }

  test('whatever it is', async () => {
    const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map(unit => String.fromCharCode(unit)) })
    await fc.assert(
      fc.asyncProperty(anyText, async body => {
        await publishMessage({ body })
        for (const message of await readEverywhere()) assert.equal(message?.body, body)
      }),
      { numRuns: 30 },
    )
  })

  test('when it comes as base64, as API Gateway sends what is of a binary content type', async () => {
    const body = texts.map(([, text]) => text).join('|')
    const event = eventFor(
      endpoints.publish,
      Buffer.from(JSON.stringify({ topicName: 't1', msgs: [{ body }] })).toString('base64'),
    )
    const { json } = await service.invoke('publish', { ...event, isBase64Encoded: true })
    assert.equal(json.suc, true)
    for (const message of await readEverywhere()) assert.ok(message?.body === body)
  })
})

suite('the short texts of a message come out as they went in', () => {
  for (const [what, text] of texts.filter(([, text]) => text.length > 0 && text.length <= 200)) {
    test(what, async () => {
      await publishMessage({ body: '', tag: text, bizId: text, traceId: text, key: text })
      for (const message of await readEverywhere()) {
        assert.deepEqual([message?.tag, message?.bizId, message?.traceId], [text, text, text])
      }
    })
  }
})

suite('a head comes out as it went in', () => {
  const heads: [string, string][] = [
    ...texts.filter(([, text]) => text.length <= 200).map(([what, text]) => [what, text] as [string, string]),
    ['__proto__', '__proto__'],
    ['constructor', 'constructor'],
    ['prototype', 'prototype'],
    ['toString', 'toString'],
    ['a number', '0'],
  ]
  for (const [what, text] of heads) {
    test(`with the key and value ${what}`, async () => {
      const head = `{${JSON.stringify(text)}:${JSON.stringify(text)}}`
      const { suc, msg } = await service.call('publish', `{"topicName":"t1","msgs":[{"body":"","head":${head}}]}`)
      assert.equal(suc, true, msg)
      for (const message of await readEverywhere())
        assert.deepEqual(Object.entries(message?.head ?? {}), [[text, text]])
    })
  }

  test('without entries', async () => {
    await publishMessage({ body: '', head: {} })
    for (const message of await readEverywhere()) assert.deepEqual(message?.head, {})
  })
})
