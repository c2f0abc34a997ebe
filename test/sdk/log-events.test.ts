import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import pino from 'pino'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { ClientEvent } from '../../sdk/src/events.ts'
import { type LogEventsOptions, logEvents } from '../../sdk/src/log/log-events.ts'
import type { Message } from '../../sdk/src/message.ts'
import { setUp } from './consumer-setup.ts'

const queue = { groupName: 'billing', topicName: 'orders', queueId: 1 }
const failed = {
  type: 'handler_failed',
  firstOffset: 1,
  lastOffset: 2,
  failedOffsets: [1],
  failures: 3,
  ...queue,
} as const

/** Pino itself, into memory. */
function toPino(options?: LogEventsOptions) {
  const written: string[] = []
  const logger = pino({ level: 'debug', base: null, timestamp: false }, { write: line => void written.push(line) })
  const listen = logEvents(logger, options)
  return { listen, written, lines: () => written.map(line => JSON.parse(line)) }
}

suite('events in a log', () => {
  test('are a line each, with their level, their names and numbers, and a sentence', () => {
    const { listen, lines } = toPino()
    listen({ type: 'assigned', ...queue, offset: 7, offsetVersion: 2 })
    listen({ type: 'skipped', ...queue, firstOffset: 8, count: 2 })
    const error = new PmqClientError('unreachable', 'nobody there')
    listen({ type: 'request_failed', operation: 'pullData', ...queue, error, retryInMs: 200 })
    assert.deepEqual(lines(), [
      { level: 30, event: 'assigned', ...queue, offset: 7, offsetVersion: 2, msg: 'pmq-sdk: a queue was assigned' },
      { level: 40, event: 'skipped', ...queue, firstOffset: 8, count: 2, msg: 'pmq-sdk: messages were past retention' },
      {
        level: 40,
        event: 'request_failed',
        operation: 'pullData',
        ...queue,
        error: { name: 'PmqClientError', code: 'unreachable' },
        retryInMs: 200,
        msg: 'pmq-sdk: a request failed',
      },
    ])
  })

  test('say of an error what it is and never what it says, whatever was thrown', () => {
    const { listen, lines, written } = toPino()
    const secret = 'card 4711'
    const nested = Object.assign(new TypeError(secret, { cause: new Error(secret) }), { detail: secret, code: 23505 })
    for (const error of [nested, secret, { body: secret }, undefined, null]) listen({ ...failed, error })
    assert.deepEqual(
      lines().map(({ level, error }) => [level, error]),
      [
        [50, { name: 'TypeError', code: 23505 }],
        [50, { name: 'string' }],
        [50, { name: 'object' }],
        [50, { name: 'undefined' }],
        [50, { name: 'object' }],
      ],
    )
    assert.ok(!written.join().includes('4711'))
  })

  test('leave out what an event is not known to have, and objects wherever they are', () => {
    const { listen, lines, written } = toPino()
    const message = { body: 'card 4711' }
    listen({
      ...failed,
      error: undefined,
      token: 't',
      firstOffset: message,
      failures: [message],
    } as unknown as ClientEvent)
    listen({ ...failed, error: undefined, failures: [1, 2] } as unknown as ClientEvent)
    assert.ok(!/4711|token/.test(written.join()))
    assert.deepEqual(lines()[1].failures, [1, 2])
  })

  test('of a trace have the places and ids of messages, and nothing else of them', () => {
    const { listen, lines } = toPino()
    const message = { offset: 1, traceId: 't', bizId: 'b', body: 'card 4711' }
    listen({ type: 'trace', step: 'began', ...queue, messages: [message] })
    assert.deepEqual(lines()[0].messages, [{ offset: 1, traceId: 't', bizId: 'b' }])
  })

  test('have the levels that the options name, or none', () => {
    const { listen, lines } = toPino({ levels: { assigned: 'debug', handler_failed: 'off' } })
    listen({ type: 'assigned', ...queue, offset: 7, offsetVersion: 2 })
    listen({ ...failed, error: undefined })
    assert.deepEqual(
      lines().map(({ level, event }) => [level, event]),
      [[20, 'assigned']],
    )
  })

  for (const [name, options] of Object.entries({
    'an unknown type of event': { levels: { asigned: 'info' } },
    'an unknown level': { levels: { assigned: 'verbose' } },
    'an inherited name': { levels: { constructor: 'info' } },
    'an unknown option': { level: 'info' },
  })) {
    test(`refuse ${name}`, () => {
      assert.throws(() => toPino(options as LogEventsOptions), { code: 'invalid_options' })
    })
  }

  test('end nothing where a logger writes by promises that reject', async () => {
    let written = 0
    const write = async () => assert.fail(`line ${++written}`)
    const listen = logEvents({ debug: write, info: write, warn: write, error: write })
    listen({ ...failed, error: undefined })
    listen({ type: 'assigned', ...queue, offset: 7, offsetVersion: 2 })
    await new Promise(setImmediate)
    assert.equal(written, 2)
  })

  test('tell of the work of a consumer, and of no message', async () => {
    const { listen, lines, written } = toPino()
    const { clock, consumer } = setUp({ queues: 1 })
    let calls = 0
    const handler = (messages: readonly Message[]) => {
      if (calls++ === 0) throw new Error(messages[0]?.body)
    }
    const { client, start, stop } = consumer(handler, { onEvent: listen })
    await start()
    await client.publish('orders', { body: 'secret body', key: 'secret key', head: { secret: 'head' } })
    await clock.advance(5_000)
    await stop()
    const types = lines().map(({ event }) => event)
    assert.deepEqual(types, ['registered', 'assigned', 'handler_failed', 'revoking', 'revoked', 'deregistered'])
    assert.ok(!written.join().includes('secret'))
  })
})
