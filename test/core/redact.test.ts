import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { redacted, toAuditText } from '../../core/audit/redact.ts'
import { limits } from '../../core/protocol/limits.ts'

const shown = (value: unknown) => JSON.parse(toAuditText(value))

suite('what the audit log shows of a request or a view', () => {
  for (const field of [
    'secret',
    'secrets',
    'webhookSecret',
    'token',
    'Tokens',
    'accessToken',
    'key',
    'keys',
    'apiKey',
    'api_key',
    'secretAccessKey',
    'privateKey',
    'password',
    'credentials',
    'Authorization',
    'signature',
    'body',
    'head',
  ]) {
    test(`is not what is in a field ${field}, however deep`, () => {
      const value = { a: [{ [field]: ['whsec_1', { b: 'whsec_2' }] }], name: 'n' }
      assert.deepEqual(shown(value), { a: [{ [field]: redacted }], name: 'n' })
    })
  }

  for (const field of ['name', 'monkey', 'headers', 'keepAlive', 'isEnabled', 'queues']) {
    test(`is what is in a field ${field}`, () => {
      assert.deepEqual(shown({ [field]: 'x' }), { [field]: 'x' })
    })
  }

  test('is what a name says that users give, also __proto__', () => {
    const value = { topicName: 'token', parameters: JSON.parse('{"__proto__":"x"}') }
    assert.equal(toAuditText(value), '{"topicName":"token","parameters":{"__proto__":"x"}}')
  })

  test('is whole up to its bound, and cut behind it', () => {
    const whole = 'x'.repeat(limits.maxAuditTextBytes - 2)
    assert.equal(shown(whole), whole)
    const { cutFromBytes, text } = shown(`${whole}y`)
    assert.equal(cutFromBytes, limits.maxAuditTextBytes + 1)
    assert.ok(text.startsWith('"xxx') && text.length > 50_000)
  })

  test('is JSON of bounded size, whatever it is of', () => {
    const units = fc.constantFrom('"', '\\', '\n', 'ä', '漢', '\u{1f600}', '\ud800', 'x', '\u0000')
    fc.assert(
      fc.property(fc.array(units, { minLength: 1, maxLength: 8 }), parts => {
        const text = toAuditText({ a: parts.join('').repeat(40_000) })
        assert.ok(Buffer.byteLength(text) <= limits.maxAuditTextBytes)
        assert.doesNotMatch(JSON.parse(text).text ?? '', /\ufffd/)
      }),
      { numRuns: 60 },
    )
  })
})
