import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LambdaConsumerOptions, type LambdaContext, lambdaConsumer } from '../../sdk/src/lambda/lambda-consumer.ts'

const url = 'http://127.0.0.1:1'
const groupName = 'billing'
const topics = { orders: () => undefined }
const fine = { url, groupName, topics }

test('what is asked for must be said, and nothing is connected for it', () => {
  assert.equal(typeof lambdaConsumer(fine), 'function')
})

const wrong: [string, object, RegExp][] = [
  ['no service', { groupName, topics }, /url is missing/],
  ['no group', { url, topics }, /groupName is missing/],
  ['no topics', { url, groupName }, /topics is missing/],
  ['a misspelt option', { ...fine, maxQueue: 3 }, /unknown option "maxQueue"; there are .*maxQueues/],
  ['an option of members', { ...fine, heartbeatIntervalMs: 10_000 }, /unknown option "heartbeatIntervalMs"/],
  [
    'more queues than a claim takes',
    { ...fine, maxQueues: 101 },
    /maxQueues is 101; it must be a whole number from 1 to 100/,
  ],
  ['longer than a lease lasts', { ...fine, timeLimitMs: 900_001 }, /timeLimitMs is 900001/],
  ['a negative wait', { ...fine, maxIdleMs: -1 }, /maxIdleMs is -1/],
  ['no time to end in', { ...fine, reserveMs: 0 }, /reserveMs is 0/],
  ['a handler that is none', { ...fine, topics: { orders: 'x' } }, /topics is an object/],
  ['an ordering that is none', { ...fine, ordering: 'none' }, /ordering is "none"/],
]
for (const [what, options, message] of wrong) {
  test(`refuses ${what}`, () => {
    const make = () => lambdaConsumer(options as LambdaConsumerOptions)
    assert.throws(make, { code: 'invalid_options', message: /^lambdaConsumer: / })
    assert.throws(make, { message })
  })
}

test('a context that is not of Lambda is refused, with what is expected', async () => {
  const handler = lambdaConsumer(fine)
  for (const context of [
    {},
    { getRemainingTimeInMillis: 5_000 },
    'x',
    (_error: unknown, _result: unknown) => undefined,
  ]) {
    await assert.rejects(handler({}, context as unknown as LambdaContext), {
      code: 'invalid_options',
      message: /no function getRemainingTimeInMillis; .* left out and timeLimitMs/,
    })
  }
})
