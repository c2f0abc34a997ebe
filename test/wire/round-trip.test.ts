import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import fc from 'fast-check'
import { endpoints } from '../../core/protocol/endpoints.ts'
import type { PublishMessage } from '../../core/protocol/publish.ts'
import { texts } from '../support/texts.ts'
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
