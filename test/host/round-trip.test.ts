import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Client, createClient, type Message, type NewMessage, PublishError } from 'pmq-sdk'
import { type Host, startHost } from '../../bin/host/host.ts'
import { openFolder } from '../../bin/host/store.ts'
import { limits } from '../../core/protocol/limits.ts'
import { setUp } from '../../demo/admin.ts'
import { seededRandom } from '../support/random.ts'
import { range, texts } from '../support/texts.ts'

/** From the SDK's producer over HTTP, the store and HTTP again to a handler of the SDK's consumer. */

suite('by the SDK over HTTP', () => {
  let folder: string
  let host: Host
  let client: Client
  let topics = 0

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pmq-round-trip-'))
    const opened = await openFolder(folder, error => assert.fail(error))
    host = await startHost(opened, {
      port: 0,
      sessionTimeoutMs: 30_000,
      subEnvironments: false,
      allowLocalTargets: false,
    })
    client = createClient({ url: host.url })
  })
  after(async () => {
    await client.close()
    await host.stop()
    await rm(folder, { recursive: true })
  })

  async function createTopic(): Promise<string> {
    const topicName = `topic-${++topics}`
    await setUp(host.url, topicName, 4, `readers-${topics}`)
    return topicName
  }

  /** The messages of a topic in the order of the publish, as a handler gets them. */
  async function roundTrip(messages: NewMessage[]): Promise<Message[]> {
    const topicName = await createTopic()
    const places = await client.publish(topicName, messages)
    const got = new Map<string, Message>()
    const all = Promise.withResolvers<void>()
    await using consumer = client.consumer({
      groupName: topicName.replace('topic', 'readers'),
      topics: {
        [topicName](handed) {
          for (const message of handed) got.set(`${message.queueId}/${message.offset}`, message)
          if (got.size >= messages.length) all.resolve()
        },
      },
    })
    await consumer.start()
    await all.promise
    return places.map(({ queueId, offset }) => got.get(`${queueId}/${offset}`) as Message)
  }

  test('every text comes out as it went in, as body, key, tag, bizId, traceId, and in a head', async () => {
    const short = texts.map(([, text]) => text).filter(text => text !== '' && text.length <= 200)
    const messages: NewMessage[] = [
      ...texts.map(([, body]) => ({ body })),
      ...short.map(text => ({
        body: text,
        key: text,
        tag: text,
        bizId: text,
        traceId: text,
        head: Object.fromEntries([[text, text]]),
      })),
    ]
    const got = await roundTrip(messages)
    for (const [index, { body, key, tag = '', bizId = '', traceId = '', head = {} }] of messages.entries()) {
      const found = got[index]
      assert.ok(found?.body === body, `${JSON.stringify(body.slice(0, 50))} came out as ${found?.body.slice(0, 50)}`)
      assert.deepEqual([found.key, found.tag, found.bizId, found.traceId], [key, tag, bizId, traceId])
      assert.deepEqual(Object.entries(found.head), Object.entries(head))
    }
  })

  /** A text that no codec makes much smaller, of so many bytes of UTF-8. */
  function textOf(bytes: number, alphabet: string, seed = 1): string {
    const random = seededRandom(seed)
    const units = [...alphabet]
    const unitBytes = Buffer.byteLength(units[0] ?? '')
    const text = Array.from(
      { length: Math.floor(bytes / unitBytes) },
      () => units[Math.floor(random() * units.length)],
    ).join('')
    return text + 'x'.repeat(bytes - Buffer.byteLength(text))
  }

  const alphabets: [string, string][] = [
    ['of ASCII', range(0x20, 0x7e)],
    ['of three bytes a character', range(0x4e00, 0x5dff)],
    ['of control characters, six bytes each as JSON', range(0, 0x1f)],
    ['of surrogates without their halves', range(0xd800, 0xdbff)],
  ]
  const fullHead = { name: 'x'.repeat(limits.maxHeadBytes - '{"name":""}'.length) }

  for (const [what, alphabet] of alphabets) {
    test(`a body at the limit ${what} is stored, with a full head and full texts`, async () => {
      for (const bytes of [limits.maxBodyBytes - 1, limits.maxBodyBytes]) {
        const body = textOf(bytes, alphabet)
        const message = {
          body,
          head: fullHead,
          tag: '€'.repeat(limits.maxTagLength),
          key: '€'.repeat(limits.maxKeyLength),
        }
        const [got] = await roundTrip([message])
        assert.ok(got?.body === body && got.tag === message.tag && got.key === message.key)
        assert.deepEqual(got.head, fullHead)
      }
    })
  }

  const tooLarge: [string, NewMessage, RegExp][] = [
    ...[limits.maxBodyBytes + 1, 399_000, 400_000, 409_600, 409_601, 1024 * 1024].map(
      (bytes): [string, NewMessage, RegExp] => [
        `a body of ${bytes} bytes`,
        { body: 'x'.repeat(bytes), head: fullHead },
        new RegExp(`body has ${bytes} bytes as UTF-8; at most ${limits.maxBodyBytes} are accepted`),
      ],
    ),
    ['16 KB of heads', { body: '', head: { a: 'x'.repeat(16_384) } }, /head has 16392 bytes as JSON; at most 8192/],
  ]
  for (const [what, message, expected] of tooLarge) {
    test(`${what} is refused before anything is sent, and so is all that was published with it`, async () => {
      const topicName = await createTopic()
      const error = await client.publish(topicName, [{ body: 'a' }, message]).then(
        () => assert.fail('resolved'),
        (thrown: unknown) => thrown,
      )
      assert.ok(error instanceof PublishError)
      assert.deepEqual([error.code, error.outcome], ['invalid_message', 'not_stored'])
      assert.match(error.message, /^message 1: /)
      assert.match(error.message, expected)
      const { offset } = await client.publish(topicName, { body: 'b' })
      assert.equal(offset, 1)
    })
  }

  for (const [what, alphabet, bytes] of [
    ['4 MB of ASCII', range(0x20, 0x7e), 4_194_304],
    ['10 MB and more of ASCII', range(0x20, 0x7e), 10_600_000],
    ['2 MB, which is 12 MB as JSON', range(0, 0x1f), 2_097_152],
  ] as const) {
    test(`messages that are ${what} together are divided into requests that the service takes`, async () => {
      const messages = Array.from({ length: limits.maxMessagesPerPublish }, (_, index) => ({
        body: `${index} ${textOf(Math.floor(bytes / limits.maxMessagesPerPublish), alphabet, index)}`,
      }))
      const got = await roundTrip(messages)
      for (const [index, { body }] of messages.entries()) assert.ok(got[index]?.body === body, `message ${index}`)
    })
  }
})
