import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { createNotifyReceiver } from '../../sdk/src/notify/receiver.ts'
import { clock, hintOf, secret, sign, ways } from './notify-setup.ts'

const onNotify = () => undefined
const onError = (error: unknown) => assert.fail(String(error))
const signed = createNotifyReceiver({ secrets: [secret], onNotify, onError, clock })
const unsigned = createNotifyReceiver({ acceptUnsigned: true, onNotify, onError, maxBodyBytes: 500 })
const refusals = new Set([400, 401, 405, 413])

const headerValue = fc.oneof(fc.string(), fc.constantFrom(...Object.values(sign('')), 'v1,', 'whsec_'))
const headers = fc.dictionary(
  fc.constantFrom('webhook-id', 'webhook-timestamp', 'Webhook-Signature', 'x'),
  fc.anything(),
)
const hintLike = fc.record({
  msgNotifyDtos: fc.oneof(
    fc.anything(),
    fc.array(fc.record({ queueId: fc.oneof(fc.integer(), fc.anything()), consumerGroupName: fc.anything() })),
  ),
})
const event = fc.oneof(
  fc.anything(),
  fc.record(
    {
      requestContext: fc.oneof(fc.anything(), fc.constant({ http: { method: 'POST' } })),
      httpMethod: fc.constantFrom('POST', 'GET', null, 5),
      headers: fc.oneof(headers, fc.anything()),
      multiValueHeaders: fc.oneof(fc.dictionary(fc.string(), fc.array(headerValue)), fc.anything()),
      body: fc.oneof(
        fc.anything(),
        fc.string(),
        fc.base64String(),
        hintLike.map(hint => JSON.stringify(hint) ?? ''),
      ),
      isBase64Encoded: fc.oneof(fc.boolean(), fc.anything()),
    },
    { requiredKeys: [] },
  ),
)

suite('a notify receiver that anything is sent to', () => {
  test('answers every event of a Lambda with a refusal, or takes it where nobody signs', async () => {
    await fc.assert(
      fc.asyncProperty(event, async given => {
        const [strict, lax] = await Promise.all([signed.lambda(given), unsigned.lambda(given)])
        assert.ok(refusals.has(strict.statusCode), `${strict.statusCode}`)
        assert.ok(lax.statusCode === 200 || refusals.has(lax.statusCode), `${lax.statusCode}`)
      }),
      { numRuns: 3_000 },
    )
  })

  test('answers every body alike in every way, whether it is signed or not', async () => {
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 800 }),
      fc.string({ unit: 'binary' }).map(text => Buffer.from(text)),
      hintLike.map(hint => Buffer.from(JSON.stringify(hint) ?? '')),
      fc.constant(Buffer.from(hintOf(['billing', 1]))),
    )
    const carriers = Object.entries(ways).filter(([name]) => name.includes('base64') || name.includes('Request'))
    await fc.assert(
      fc.asyncProperty(body, fc.boolean(), async (bytes, isSigned) => {
        for (const receiver of [signed, unsigned]) {
          const sent = { body: bytes, headers: isSigned ? sign(bytes) : {} }
          const statuses = await Promise.all(carriers.map(async ([, send]) => (await send(receiver, sent)).status))
          assert.equal(new Set(statuses).size, 1, statuses.join())
          assert.ok(statuses[0] === 200 || refusals.has(statuses[0] ?? 0))
          if (receiver === signed && !isSigned) assert.equal(statuses[0], 401)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('takes no hint whose signature, time, id or body has one character changed', async () => {
    const body = hintOf(['billing', 11])
    const send = ways['API Gateway 2.0'] as (typeof ways)[string]
    const parts = { ...sign(body), body }
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...(Object.keys(parts) as (keyof typeof parts)[])),
        fc.nat(),
        fc.string({ minLength: 1, maxLength: 1 }),
        async (name, at, character) => {
          const place = at % parts[name].length
          const changed = parts[name].slice(0, place) + character + parts[name].slice(place + 1)
          fc.pre(changed !== parts[name])
          const { body: sentBody, ...headers } = { ...parts, [name]: changed }
          // A space in the signature cuts it into two, none of which fits.
          assert.equal((await send(signed, { headers, body: sentBody })).status, 401)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
