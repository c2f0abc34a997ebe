import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { createNotifyReceiver, type NotifyHint, type NotifyReceiverOptions } from '../../sdk/src/notify/receiver.ts'
import { binaryWays, clock, hintOf, nowMs, secret, secretBytes, sign, ways } from './notify-setup.ts'

function setUp(options: Partial<NotifyReceiverOptions> = {}) {
  const taken: NotifyHint[] = []
  const errors: unknown[] = []
  const receiver = createNotifyReceiver({
    secrets: [secret],
    onNotify: hints => void taken.push(...hints),
    onError: error => errors.push(error),
    clock,
    ...options,
  })
  return { receiver, taken, errors }
}

const unsigned = { secrets: undefined, acceptUnsigned: true }
const hint = hintOf(['billing', 11])

for (const [name, send] of Object.entries(ways)) {
  suite(`a notify receiver, by ${name}`, () => {
    test('takes a signed hint, a list of queues for each group, and answers with nothing', async () => {
      const { receiver, taken } = setUp()
      const body = hintOf(['billing', 11], ['shipping', 11], ['billing', 12], ['billing', 11])
      const answer = await send(receiver, { headers: sign(body), body })
      assert.deepEqual(answer, { status: 200, body: '', allow: undefined })
      assert.deepEqual(taken, [
        { groupName: 'billing', queueIds: [11, 12] },
        { groupName: 'shipping', queueIds: [11] },
      ])
    })

    test('refuses a hint that is not signed, or whose body was changed', async () => {
      const { receiver, taken } = setUp()
      assert.equal((await send(receiver, { body: hint })).status, 401)
      assert.equal((await send(receiver, { headers: sign(hint), body: hintOf(['billing', 12]) })).status, 401)
      assert.equal((await send(receiver, { headers: sign(hint), body: `${hint} ` })).status, 401)
      assert.deepEqual(taken, [])
    })

    test('refuses what is signed and no hint', async () => {
      const { receiver, taken } = setUp()
      for (const body of ['', '{', 'null', '[]', '{"msgNotifyDtos":{}}', `\ufeff${hint}`, hintOf(['a b', 1])])
        assert.equal((await send(receiver, { headers: sign(body), body })).status, 400, body)
      assert.deepEqual(taken, [])
    })

    test('refuses other methods, and says which it takes', async () => {
      const { receiver } = setUp()
      assert.deepEqual(await send(receiver, { method: 'GET' }), { status: 405, body: '', allow: 'POST' })
      assert.equal((await send(receiver, { method: 'PUT', headers: sign(hint), body: hint })).status, 405)
    })

    test('takes a body of maxBodyBytes, and none of a byte more', async () => {
      const { receiver, taken } = setUp({ maxBodyBytes: 10_000 })
      for (const more of [0, 1, 2, 3, 1_000_000]) {
        const body = hint.padEnd(10_000 + more)
        assert.equal((await send(receiver, { headers: sign(body), body })).status, more === 0 ? 200 : 413)
      }
      assert.equal(taken.length, 1)
    })
  })
}

for (const [name, send] of Object.entries(binaryWays)) {
  suite(`bytes that are not text, by ${name}`, () => {
    const text = Buffer.from(hintOf(['billing', 11]).replace('10.0.0.5', '10.0.0.�'))
    const bytes = Buffer.from(text.toString('latin1').replace('ï¿½', 'ÿ'), 'latin1')

    test('are not taken for the text that they look like when decoded, whose signature would fit', async () => {
      const { receiver, taken } = setUp()
      assert.equal(bytes.toString(), text.toString())
      assert.equal((await send(receiver, { headers: sign(text), body: text })).status, 200)
      assert.equal((await send(receiver, { headers: sign(text), body: bytes })).status, 401)
      assert.equal((await send(receiver, { headers: sign(bytes), body: bytes })).status, 401)
      assert.equal(taken.length, 1)
    })

    test('are no hint where nobody signs', async () => {
      const { receiver, taken } = setUp(unsigned)
      assert.equal((await send(receiver, { body: bytes })).status, 400)
      assert.equal((await send(receiver, { body: Buffer.from([0, 255, 254, 128, 0]) })).status, 400)
      assert.deepEqual(taken, [])
    })

    test('a body is verified as it was sent: its byte order mark and its line ends count', async () => {
      const { receiver } = setUp()
      const body = `${hint}\r\n`
      assert.equal((await send(receiver, { headers: sign(body), body })).status, 200)
      assert.equal((await send(receiver, { headers: sign(body), body: `${hint}\n` })).status, 401)
      assert.equal((await send(receiver, { headers: sign(hint), body: `\ufeff${hint}` })).status, 401)
    })
  })
}

suite('signatures', () => {
  const send = ways['API Gateway 2.0 with base64'] as (typeof ways)[string]
  const statusOf = async (options: Partial<NotifyReceiverOptions>, headers: Record<string, string>, body = hint) =>
    (await send(setUp(options).receiver, { headers, body })).status

  test('are those that the library of the standard makes', async () => {
    const signature = new Webhook(secret).sign('msg_1', new Date(nowMs), hint)
    assert.equal(await statusOf({}, { ...sign(hint), 'webhook-signature': signature }), 200)
  })

  test('may be by any of the secrets, with their prefix or without', async () => {
    const other = Buffer.alloc(24, 9)
    const secrets = [`whsec_${Buffer.alloc(64, 1).toString('base64')}`, other.toString('base64'), secret]
    for (const key of [secretBytes, other]) assert.equal(await statusOf({ secrets }, sign(hint, { key })), 200)
    assert.equal(await statusOf({ secrets }, sign(hint, { key: Buffer.alloc(32, 2) })), 401)
  })

  test('may be several, of which one fits', async () => {
    const headers = sign(hint)
    const { 'webhook-signature': right } = headers
    const wrong = `v1,${Buffer.alloc(32).toString('base64')}`
    for (const [signatures, status] of [
      [`${wrong} v1a,abc ${right}`, 200],
      [`${right} ${wrong}`, 200],
      [`${wrong} ${wrong}`, 401],
      [right.replace('v1,', 'v2,'), 401],
      [right.replace('v1,', ''), 401],
      [right.slice(0, -1), 401],
      ['v1', 401],
      ['v1,', 401],
      [' ', 401],
    ] as const)
      assert.equal(await statusOf({}, { ...headers, 'webhook-signature': signatures }), status, signatures)
  })

  test('count for five minutes before and after their time, or as long as toleranceMs says', async () => {
    const at = (offsetMs: number) => sign(hint, { atMs: nowMs + offsetMs })
    for (const [offsetMs, status] of [
      [-300_000, 200],
      [300_000, 200],
      [-301_000, 401],
      [301_000, 401],
    ] as const)
      assert.equal(await statusOf({}, at(offsetMs)), status)
    assert.equal(await statusOf({ toleranceMs: 5_000 }, at(-5_000)), 200)
    assert.equal(await statusOf({ toleranceMs: 5_000 }, at(-6_000)), 401)
  })

  test('cover the id and the time; a time is whole seconds', async () => {
    const headers = sign(hint)
    assert.equal(await statusOf({}, { ...headers, 'webhook-id': 'msg_2' }), 401)
    const { 'webhook-timestamp': seconds } = headers
    for (const timestamp of [
      '',
      '0',
      `${Number(seconds) + 1}`,
      `${seconds}.0`,
      `${seconds}x`,
      '1e9',
      'NaN',
      '9'.repeat(400),
    ])
      assert.equal(await statusOf({}, { ...headers, 'webhook-timestamp': timestamp }), 401, timestamp)
    for (const name of Object.keys(headers)) {
      const { [name as keyof typeof headers]: _, ...others } = headers
      assert.equal(await statusOf({}, others), 401, name)
    }
  })
})

suite('hints', () => {
  const send = ways['Request and Response'] as (typeof ways)[string]

  test('that name no queue are accepted and told to nobody', async () => {
    const { receiver, errors } = setUp({ ...unsigned, onNotify: () => assert.fail('called') })
    assert.equal((await send(receiver, { body: hintOf() })).status, 200)
    assert.deepEqual(errors, [])
  })

  test('with one entry that is none are refused whole', async () => {
    const { receiver, taken } = setUp(unsigned)
    const good = { queueId: 11, consumerGroupName: 'billing' }
    for (const bad of [
      null,
      7,
      {},
      { ...good, queueId: '11' },
      { ...good, queueId: 0 },
      { ...good, queueId: 1.5 },
      { ...good, queueId: 2 ** 53 },
      { ...good, consumerGroupName: '' },
      { ...good, consumerGroupName: 'g'.repeat(361) },
      { ...good, consumerGroupName: ['billing'] },
    ]) {
      const body = JSON.stringify({ msgNotifyDtos: [good, bad] })
      assert.equal((await send(receiver, { body })).status, 400, body)
    }
    assert.deepEqual(taken, [])
  })

  test('of a group with an odd name are told under that name', async () => {
    const { receiver, taken } = setUp(unsigned)
    await send(receiver, { body: hintOf(['__proto__', 1], ['constructor', 2], ['billing~10.1.1.1', 3]) })
    assert.deepEqual(
      taken.map(({ groupName }) => groupName),
      ['__proto__', 'constructor', 'billing~10.1.1.1'],
    )
  })

  test('are answered when onNotify has ended, and alike when it fails', async () => {
    for (const onNotify of [
      () => Promise.reject(undefined),
      () => {
        throw new Error('sync')
      },
    ]) {
      const { receiver, errors } = setUp({ ...unsigned, onNotify })
      assert.equal((await send(receiver, { body: hint })).status, 200)
      assert.equal(errors.length, 1)
    }
    let hasEnded = false
    const onNotify = async () => {
      await new Promise(resolve => setImmediate(resolve))
      hasEnded = true
    }
    await send(setUp({ ...unsigned, onNotify }).receiver, { body: hint })
    assert.ok(hasEnded)
  })

  test('an onError that fails itself changes nothing', async () => {
    const onNotify = () => Promise.reject(new Error('a'))
    for (const onError of [() => Promise.reject(new Error('b')), () => assert.fail('c')]) {
      const { receiver } = setUp({ ...unsigned, onNotify, onError })
      assert.equal((await send(receiver, { body: hint })).status, 200)
    }
  })

  test('whose body somebody has read before are refused, and the reason is told', async () => {
    const { receiver, errors } = setUp(unsigned)
    const request = new Request('http://localhost/', { method: 'POST', body: hint })
    await request.text()
    assert.equal((await receiver.fetch(request)).status, 400)
    assert.match(String(errors[0]), /The body was read before it came to the notify receiver/)
  })
})

suite('the options of a notify receiver', () => {
  const onNotify = () => undefined
  const refused: [name: string, options: object, text: RegExp][] = [
    ['nothing that verifies', { onNotify }, /secrets is missing; give a secret, or set acceptUnsigned/],
    ['an empty list of secrets', { onNotify, secrets: [] }, /secrets is missing/],
    ['secrets and unsigned hints', { onNotify, secrets: [secret], acceptUnsigned: true }, /give one of the two/],
    ['a secret that is no list', { onNotify, secrets: secret }, /give an array of secrets/],
    ['no onNotify', { secrets: [secret] }, /onNotify is missing/],
    ['an unknown option', { onNotify, secret }, /unknown option "secret"/],
    ['a body bound of nothing', { onNotify, secrets: [secret], maxBodyBytes: 0 }, /maxBodyBytes is 0; it must be/],
  ]
  for (const [name, options, text] of refused) {
    test(`refuse ${name}`, () => {
      assert.throws(() => createNotifyReceiver(options as NotifyReceiverOptions), {
        code: 'invalid_options',
        message: text,
      })
    })
  }

  test('refuse what is no secret, and do not say what it was', () => {
    const wrong = [
      '',
      'whsec_',
      'hunter2',
      'whsec_hunter2hunter2hunter2hunter2hunter2=',
      undefined,
      7,
      'A'.repeat(100),
      'QUFB',
    ]
    for (const [index, value] of wrong.entries()) {
      const secrets = [...Array(index).fill(secret), value]
      assert.throws(
        () => createNotifyReceiver({ onNotify, secrets } as NotifyReceiverOptions),
        (error: Error) =>
          error.message.includes(`secrets[${index}]`) && !/hunter2|AAAA|QUFB|BwcH/.test(error.stack ?? ''),
      )
    }
  })
})
