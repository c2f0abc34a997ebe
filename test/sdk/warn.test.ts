import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { PmqClientError, PublishError } from '../../sdk/src/errors.ts'
import { createWarner } from '../../sdk/src/warn.ts'

const queue = { groupName: 'g', topicName: 'orders', queueId: 1 }
const failed = {
  type: 'handler_failed',
  firstOffset: 1,
  lastOffset: 1,
  failedOffsets: [1],
  failures: 1,
  ...queue,
} as const

suite('a client without a listener', () => {
  test('warns of each kind of trouble once', () => {
    const warnings: string[] = []
    const listen = createWarner(text => warnings.push(text))
    const away = new PmqClientError('unreachable', 'nobody there')
    for (let i = 0; i < 3; i++) {
      listen({ type: 'request_failed', operation: 'publish', error: away, retryInMs: 100 })
      listen({ type: 'request_failed', operation: 'pullData', error: away })
      listen({ ...failed, error: new TypeError('a secret') })
      listen({ type: 'assigned', offset: 0, offsetVersion: 1, ...queue })
    }
    assert.deepEqual(
      warnings.map(text => text.split('.')[0]),
      [
        'pmq-sdk: publish failed (unreachable); it goes on trying',
        'pmq-sdk: pullData failed (unreachable)',
        'pmq-sdk: the handler of orders failed (TypeError); it is called again',
      ],
    )
  })

  test('warns of a consumer that was replaced, and of a topic that brings nothing', () => {
    const warnings: string[] = []
    const listen = createWarner(text => warnings.push(text))
    const error = new PmqClientError('replaced', 'another one')
    listen({ type: 'replaced', groupName: 'g', consumerId: 1, instanceId: 'pod-0', error })
    listen({ type: 'not_subscribed', groupName: 'g', topicName: 'orders' })
    assert.deepEqual(
      warnings.map(text => text.split('.')[0]),
      [
        'pmq-sdk: another consumer of g has the instanceId pod-0; this one has stopped',
        'pmq-sdk: group g does not subscribe to orders, which has a handler here',
      ],
    )
  })

  test('warns of a publish that was lost without anybody being told, and of a callback that fails', () => {
    const warnings: string[] = []
    const listen = createWarner(text => warnings.push(text))
    const error = new PublishError('buffer_full', 'no room', { outcome: 'not_stored' })
    listen({ type: 'publish_failed', topicName: 'orders', messages: 3, error })
    listen({ type: 'callback_failed', callback: 'onDone', topicName: 'orders', error: new TypeError('a secret') })
    assert.deepEqual(
      warnings.map(text => text.split('.')[0]),
      [
        'pmq-sdk: a publish to orders was lost (buffer_full), and nobody was told',
        'pmq-sdk: the onDone of a publish to orders failed (TypeError)',
      ],
    )
  })

  test('warns of failures, slowness and listeners, by what they are', () => {
    const warnings: string[] = []
    const listen = createWarner(text => warnings.push(text))
    const failTopicName = 'g_orders_fail'
    listen({ ...failed, error: new PmqClientError('handler_timeout', 'too long'), failTopicName })
    listen({ type: 'failures_stored', ...queue, failTopicName, offsets: [1, 2], deadOffsets: [] })
    listen({ type: 'failures_stored', ...queue, failTopicName, offsets: [1, 2], deadOffsets: [2] })
    listen({ type: 'handler_slow', ...queue, offsets: [1], runningMs: 300_000 })
    listen({ type: 'listener_failed', ...queue, listener: 'filter', error: new RangeError('4711') })
    assert.deepEqual(
      warnings.map(text => text.split('.')[0]),
      [
        'pmq-sdk: the handler of orders failed (handler_timeout); its messages go to g_orders_fail',
        'pmq-sdk: messages of orders have failed as often as they may, and are kept in g_orders_fail',
        'pmq-sdk: a handler call of orders takes long',
        'pmq-sdk: the listener filter failed (RangeError)',
      ],
    )
  })

  test('says nothing of what a handler says, which may quote a message', () => {
    const warnings: string[] = []
    const listen = createWarner(text => warnings.push(text))
    for (const error of [new Error('card 4711'), 'card 4711', undefined]) listen({ ...failed, error })
    assert.equal(warnings.length, 3)
    assert.ok(!warnings.join().includes('4711'))
  })
})
