import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { PublishError } from '../../sdk/src/errors.ts'
import type { NewMessage } from '../../sdk/src/message.ts'
import { checkMessage, messageBytes } from '../../sdk/src/publish/check-message.ts'

suite('a message is refused before anything is sent', () => {
  const refused: [string, unknown, RegExp][] = [
    ['is not an object', 'text', /message 3 is string; it must be an object/],
    ['is null', null, /message 3 is null/],
    ['has no body', {}, /body is undefined; it must be a string/],
    ['has a body that is a number', { body: 1 }, /body is number; it must be a string/],
    ['has a misspelt field', { body: '', tags: 'a' }, /unknown field "tags"; there are body, key/],
    ['has a body over the limit', { body: 'x'.repeat(262_145) }, /body has 262145 bytes as UTF-8; at most 262144/],
    ['has a body whose UTF-8 is over the limit', { body: '€'.repeat(87_382) }, /body has 262146 bytes/],
    ['has an empty key', { body: '', key: '' }, /key is empty; leave it out, or give 1 to 200 characters/],
    ['has a long key', { body: '', key: 'k'.repeat(201) }, /key has 201 characters; at most 200 are accepted/],
    ['has a key that is a number', { body: '', key: 7 }, /key is number; it must be a string/],
    ['has a long tag', { body: '', tag: 't'.repeat(1_001) }, /tag has 1001 characters; at most 1000/],
    ['has a long bizId', { body: '', bizId: 'b'.repeat(201) }, /bizId has 201 characters; at most 200/],
    ['has a long traceId', { body: '', traceId: 't'.repeat(201) }, /traceId has 201 characters; at most 200/],
    ['has a head that is an array', { body: '', head: ['a'] }, /head is an array; it must be an object of strings/],
    ['has a head value that is a number', { body: '', head: { a: 1 } }, /head "a" is number; it must be a string/],
    [
      'has too many head entries',
      { body: '', head: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`k${i}`, ''])) },
      /head has 33 entries; at most 32/,
    ],
    ['has a large head', { body: '', head: { a: 'ü'.repeat(4_096) } }, /head has 8200 bytes as JSON; at most 8192/],
  ]
  for (const [what, message, expected] of refused) {
    test(`that ${what}`, () => {
      assert.throws(
        () => checkMessage(message as NewMessage, 3),
        (error: unknown) => {
          assert.ok(error instanceof PublishError)
          assert.deepEqual([error.code, error.outcome], ['invalid_message', 'not_stored'])
          assert.match(error.message, expected)
          return true
        },
      )
    })
  }
})

suite('a message is accepted', () => {
  test('at the limits', () => {
    checkMessage({ body: 'x'.repeat(262_144), key: 'k'.repeat(200), tag: 't'.repeat(1_000) })
    checkMessage({ body: '€'.repeat(87_381) })
  })

  test('whatever text its body is', () => {
    for (const body of [
      '',
      'null',
      '{ac',
      "what's up?",
      '\u0000\u001f\u007f\ufffe\uffff',
      '\ud800',
      '👩‍👩‍👧‍👦',
      '\ufeffa',
    ]) {
      assert.equal(JSON.parse(JSON.stringify(checkMessage({ body }))).body, body)
    }
  })

  test('as a copy, which later changes do not reach', () => {
    const message = { body: 'a', head: { name: 'old' } }
    const copy = checkMessage(message)
    message.body = 'b'
    message.head.name = 'new'
    assert.equal(copy.body, 'a')
    assert.deepEqual(copy.head, { name: 'old' })
  })

  test('with a head entry of any name', () => {
    const head = JSON.parse('{"__proto__":"x","constructor":"y"}')
    assert.equal(JSON.stringify(checkMessage({ body: '', head }).head), '{"__proto__":"x","constructor":"y"}')
  })
})

test('the bytes of a message are at least those of its texts', () => {
  const message = checkMessage({ body: '€'.repeat(100), key: 'key', tag: 'tag', head: { name: 'ü' } })
  assert.ok(messageBytes(message) >= 300 + 3 + 3 + Buffer.byteLength('{"name":"ü"}'))
})
