import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { PmqClientError } from '../../sdk/src/errors.ts'
import { createWarner } from '../../sdk/src/warn.ts'

const queue = { groupName: 'g', topicName: 'orders', queueId: 1 }
const failed = { type: 'handler_failed', firstOffset: 1, lastOffset: 1, failures: 1, ...queue } as const

suite('a client without a listener', () => {
  test('warns of each kind of trouble once', () => {
    const warnings: string[] = []
    const listen = createWarner(text => warnings.push(text))
    const away = new PmqClientError('unreachable', 'nobody there')
    for (let i = 0; i < 3; i++) {
      listen({ type: 'request_failed', operation: 'publish', error: away })
      listen({ type: 'request_failed', operation: 'pullData', error: away })
      listen({ ...failed, error: new TypeError('a secret') })
      listen({ type: 'assigned', offset: 0, offsetVersion: 1, ...queue })
    }
    assert.deepEqual(
      warnings.map(text => text.split('.')[0]),
      [
        'pmq-sdk: publish failed (unreachable)',
        'pmq-sdk: pullData failed (unreachable)',
        'pmq-sdk: the handler of orders failed (TypeError)',
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
