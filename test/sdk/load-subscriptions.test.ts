import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { PmqClientError } from '../../sdk/src/errors.ts'
import { type LoadSubscriptionsOptions, loadSubscriptions } from '../../sdk/src/xml/load-subscriptions.ts'
import { handled } from '../fixtures/xml/handlers/refunds.ts'
import { setUp } from './consumer-setup.ts'

const fileUrl = new URL('../fixtures/xml/messageQueue.xml', import.meta.url)
const handlers = { 'com.example.OrdersSubscriber': () => undefined, b: () => undefined }

const topic = '<topic name="t1" receiverType="b"/>'
const groupOf = (inner: string, groupName = 'g1') =>
  `<a>\n<consumer groupName="${groupName}">\n${inner}\n</consumer>\n</a>`

async function errorOf(xml: string | URL, options: LoadSubscriptionsOptions = { handlers }): Promise<string> {
  const error = await loadSubscriptions(xml, options).then(
    () => assert.fail(`accepted: ${xml}`),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof PmqClientError, String(error))
  assert.equal(error.code, 'invalid_options')
  return error.message
}

suite("PMQ's messageQueue.xml", () => {
  test('gives each consumer its group and its topics, with handlers by name and from modules beside the file', async () => {
    for (const source of [fileUrl, fileURLToPath(fileUrl), relative('', fileURLToPath(fileUrl))]) {
      const subscriptions = await loadSubscriptions(source, { handlers })
      assert.deepEqual(
        subscriptions.map(({ groupName, topics }) => [groupName, Object.keys(topics)]),
        [
          ['billing', ['orders', 'refunds']],
          ['shipping', ['orders']],
        ],
      )
      assert.equal(subscriptions[0]?.topics.orders, handlers['com.example.OrdersSubscriber'])
      assert.equal(subscriptions[1]?.topics.orders, handlers['com.example.OrdersSubscriber'])
    }
  })

  test('is all that a consumer needs', async () => {
    const { clock, consumer, log } = setUp({ queues: 1 })
    const xml = groupOf('<topic name="orders" receiverType="./handlers/refunds.ts#handleRefunds"/>', 'billing')
    const folder = await mkdtemp(join(tmpdir(), 'pmq-xml-'))
    const path = join(folder, 'messageQueue.xml')
    await writeFile(path, xml.replace('./', `${relative(folder, fileURLToPath(new URL('.', fileUrl)))}/`))
    const [subscription] = await loadSubscriptions(path)
    const { start, stop } = consumer(() => assert.fail('another handler'), subscription)
    await start()
    log.put(1, ['a', 'b'])
    await clock.advance(1_000)
    assert.deepEqual(handled, [1, 2])
    await stop()
    await rm(folder, { recursive: true })
  })

  test('finds handlers by a function, at once or later', async () => {
    const found = () => undefined
    for (const find of [() => found, async () => found]) {
      const [subscription] = await loadSubscriptions(groupOf(topic), { handlers: find })
      assert.equal(subscription?.topics.t1, found)
    }
  })

  test('has no subscriptions where it has no consumers', async () => {
    assert.deepEqual(await loadSubscriptions('<messageQueue/>'), [])
    assert.deepEqual(await loadSubscriptions('\ufeff<?xml version="1.0"?>\r\n<a><consumers></consumers></a>'), [])
  })

  test('may name groups and topics as objects name what they inherit', async () => {
    const xml = groupOf(
      '<topic name="__proto__" receiverType="b"/><topic name="toString" receiverType="b"/>',
      '__proto__',
    )
    const [subscription] = await loadSubscriptions(xml, { handlers })
    assert.deepEqual(Object.keys(subscription?.topics ?? {}), ['__proto__', 'toString'])
  })
})

suite('an error in messageQueue.xml', () => {
  const wrong: [what: string, xml: string, message: string | RegExp][] = [
    [
      'a handler that is not there',
      groupOf('<topic name="t1"\n receiverType="c"/>'),
      'XML:3: receiverType of topic "t1" is "c": there is no such handler; it must be "b", "com.example.OrdersSubscriber", a module path such as "./handlers.js#ordersHandler"',
    ],
    [
      'an inherited name',
      groupOf('<topic name="t1" receiverType="toString"/>'),
      /^XML:3: receiverType of topic "t1" is "toString": there is no such handler/,
    ],
    [
      'a topic without a name',
      groupOf('<topic receiverType="b"/>'),
      'XML:3: <topic> has only receiverType; it must have name="…"',
    ],
    [
      'a topic without a receiverType',
      groupOf('<topic name="t1" recieverType="b"/>'),
      'XML:3: <topic> has only name, recieverType; it must have receiverType="…"',
    ],
    [
      'a consumer without a name',
      `<a>\n<consumer>${topic}</consumer></a>`,
      'XML:2: <consumer> has no attributes; it must have groupName="…"',
    ],
    ['an empty name', groupOf(topic, ''), 'XML:2: <consumer> has an empty groupName; it must have groupName="…"'],
    [
      'a name that no group can have',
      groupOf(topic, 'a b'),
      /^XML:2: groupName is "a b"; it must be 1 to 100 characters of/,
    ],
    [
      'a topic that is there twice',
      groupOf(`${topic}\n<more>\n${topic}</more>`),
      'XML:5: there is a topic "t1" of group "g1" in line 3 already; it must be once',
    ],
    [
      'a group that is there twice',
      groupOf(`${topic}</consumer><consumer groupName="g1">${topic}`),
      'XML:3: there is a consumer of group "g1" in line 2 already; it must be once',
    ],
    ['a consumer without topics', groupOf('<topics/>'), /^XML:3: <topics> has no topic; it must have <topic name/],
    ['a misspelt topic', groupOf(`${topic}\n<topc name="t2" receiverType="b"/>`), /^XML:4: <topc> has no topic/],
    [
      'a misspelt consumer',
      '<a>\n\n<consumr groupName="g1"/></a>',
      'XML:3: <consumr> is no element of <a>; it must be <consumer> or <consumers>',
    ],
    [
      'a module path without a file',
      groupOf('<topic name="t1" receiverType="./x.js#y"/>'),
      /^XML:3: .* a module path is relative to a file/,
    ],
    ['an element that is not closed', '<a>\n<b>\n</a>', /^XML:3: the XML is broken: Expected closing tag 'b'/],
    [
      'an attribute that is there twice',
      groupOf('<topic name="t1" name="t2"/>'),
      /^XML:3: the XML is broken: Attribute 'name' is repeated/,
    ],
    ['two roots', `${groupOf(topic)}\n<b/>`, 'XML:6: <b> is a second root element; there may be one'],
    ['only the beginning of a document', '<?xml version="1.0"?>', /^XML:1: the XML/],
    [
      'too many levels',
      `<a>${'<consumers>'.repeat(1_000)}${'</consumers>'.repeat(1_000)}</a>`,
      /^XML:1: the XML cannot be read: Maximum nested tags/,
    ],
  ]
  for (const [what, xml, message] of wrong) {
    test(`is told with its line: ${what}`, async () => {
      for (const [as, text] of [xml, xml.replaceAll('\n', '\r\n'), `\ufeff${xml}`].entries()) {
        const told = await errorOf(text)
        if (typeof message === 'string') assert.equal(told, message, `form ${as}`)
        else assert.match(told, message, `form ${as}`)
      }
    })
  }

  test('names the file, and the first that is wrong', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pmq-xml-'))
    const path = join(folder, 'my.xml')
    await writeFile(path, groupOf('<topic name="t1" receiverType="c"/>\n<topic name="t2" receiverType="d"/>'))
    assert.match(await errorOf(path), /my\.xml:3: receiverType of topic "t1" is "c"/)
    await rm(folder, { recursive: true })
    assert.match(await errorOf(path), /my\.xml: the file cannot be read: ENOENT/)
  })

  test('tells of a module what it has', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pmq-xml-'))
    const path = join(folder, 'messageQueue.xml')
    await writeFile(join(folder, 'refunds.mjs'), 'export function handleRefunds() {}\nexport const rate = 0.2')
    await writeFile(join(folder, 'broken.mjs'), "throw new Error('no database')")
    const told = async (receiverType: string) => {
      await writeFile(path, groupOf(`<topic name="t1" receiverType="${receiverType}"/>`))
      return errorOf(path)
    }
    assert.match(await told('./refunds.mjs#handle'), /"handle" is no function of .*; it must be handleRefunds$/)
    assert.match(await told('./refunds.mjs#rate'), /"rate" is no function/)
    assert.match(await told('./refunds.mjs#toString'), /"toString" is no function/)
    assert.match(await told('./broken.mjs#a'), /messageQueue\.xml:3: receiverType .*: no database$/)
    assert.match(await told('./missing.mjs#a'), /Cannot find module/)
    assert.match(await told('./refunds.mjs'), /there is no such handler/)
    await rm(folder, { recursive: true })
  })

  for (const [what, source, options] of [
    ['an empty path', '', {}],
    ['no path', undefined, {}],
    ['handlers that are a list', '<a/>', { handlers: [] }],
    ['an unknown option', '<a/>', { handler: {} }],
  ] as const) {
    test(`is told of the call itself: ${what}`, async () => {
      await errorOf(source as string, options as LoadSubscriptionsOptions)
    })
  }
})

suite('XML that means harm', () => {
  test('expands no entity: what would be gigabytes stays as it is written', async () => {
    const entities = Array.from({ length: 20 }, (_, level) => `<!ENTITY e${level + 1} "${`&e${level};`.repeat(10)}">`)
    const xml = `<!DOCTYPE a [<!ENTITY e0 "lol">\n${entities.join('\n')}]>${groupOf('<topic name="&e20;" receiverType="b"/>')}`
    assert.match(await errorOf(xml), /^XML:23: name is "&e20;"; it must be/)
  })

  test('reads nothing else: neither a file nor an address', async () => {
    let connections = 0
    const server = createServer(socket => {
      connections++
      socket.destroy()
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    for (const place of [fileUrl.href, `http://127.0.0.1:${port}/x`]) {
      const ofEntity = `<!DOCTYPE a [<!ENTITY x SYSTEM "${place}">]>${groupOf('<topic name="&x;" receiverType="b"/>')}`
      assert.match(await errorOf(ofEntity), /External entities are not supported/)
      const ofParameter = `<!DOCTYPE a [<!ENTITY % x SYSTEM "${place}"> %x;]>${groupOf(topic)}`
      await errorOf(ofParameter)
      assert.equal((await loadSubscriptions(`<!DOCTYPE a SYSTEM "${place}">${groupOf(topic)}`, { handlers })).length, 1)
    }
    await new Promise(resolve => server.close(resolve))
    assert.equal(connections, 0)
  })

  test('of any kind is read or refused with an error of ours', async () => {
    const piece = fc.constantFrom(
      '<a>',
      '</a>',
      '<consumer groupName="g">',
      '</consumer>',
      topic,
      '<topic ',
      '"',
      '&x;',
      '<!--',
      '-->',
      '<![CDATA[',
      ']]>',
      '<!DOCTYPE a [',
      ']>',
      '<?xml ?>',
      '\n',
      '__proto__',
      '<',
      '>',
    )
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(piece, fc.string()), { maxLength: 20 }), async pieces => {
        try {
          await loadSubscriptions(`<${pieces.join('')}`, { handlers })
        } catch (error) {
          assert.ok(error instanceof PmqClientError, String(error))
        }
      }),
      { numRuns: 3_000 },
    )
  })
})
