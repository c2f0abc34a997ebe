import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { AssignedQueue } from '../../core/protocol/membership.ts'
import type { Message } from '../../sdk/src/message.ts'
import { nextRetryCount } from '../../sdk/src/worker/failure-plan.ts'
import { createKeyLanes } from '../../sdk/src/worker/key-lanes.ts'
import { selectionOf } from '../../sdk/src/worker/selection.ts'

const message = (fields: Partial<Message>) => ({ tag: '', retryCount: 0, ...fields }) as Message
const queue = (fields: Partial<AssignedQueue>) => ({ topicType: 1, retryCount: 4, ...fields }) as AssignedQueue

suite('what of a queue is for the handler', () => {
  test('is everything, without tags', () => {
    for (const tag of [undefined, '']) assert.equal(selectionOf(queue({ tag })), undefined)
  })

  test('is what has exactly one of the tags; a message without a tag has none of them', () => {
    const selection = selectionOf(queue({ tag: 'paid,sent,,a.b' })) ?? assert.fail()
    const matches = ['paid', 'sent', 'a.b', '', 'pai', 'paid,sent', 'PAID', 'axb', ','].map(tag =>
      selection(message({ tag })),
    )
    assert.deepEqual(matches, [true, true, true, false, false, false, false, false, false])
  })

  test('is in a fail queue what has failed less often than it may: N further executions where the wire says N + 1', () => {
    const selection = selectionOf(queue({ topicType: 2, retryCount: 4 })) ?? assert.fail()
    assert.deepEqual(
      [0, 1, 3, 4, 5].map(retryCount => selection(message({ retryCount }))),
      [true, true, true, false, false],
    )
  })
})

suite('a message that failed', () => {
  const settings = { failTopicName: 'g_t_fail', retryCount: 4 }

  test('goes to the fail topic, with its count raised', () => {
    assert.equal(nextRetryCount(settings, message({ retryCount: 0 }), 1), 1)
    assert.equal(nextRetryCount(settings, message({ retryCount: 3 }), 1), 4)
  })

  test('stays where there is no fail topic', () => {
    assert.equal(nextRetryCount({ retryCount: 4 }, message({}), 1_000), undefined)
    assert.equal(nextRetryCount({ retryCount: 4, retryInPlace: true }, message({}), 1_000), undefined)
  })

  test('that is retried in place goes there as a dead letter, after exactly N further executions', () => {
    const inPlace = { ...settings, retryInPlace: true }
    assert.deepEqual(
      [1, 2, 3, 4].map(failures => nextRetryCount(inPlace, message({}), failures)),
      [undefined, undefined, undefined, 4],
    )
    assert.equal(nextRetryCount({ ...inPlace, retryCount: 1 }, message({}), 1), 1, 'no retry at all')
    assert.equal(nextRetryCount({ ...inPlace, retryCount: 2 }, message({}), 3), 2, 'fewer since it failed')
  })
})

suite('key lanes', () => {
  const item = (key: string | undefined, n = 0) => ({ message: { key }, n })

  test('let one message of each key through, and those without a key', () => {
    const lanes = createKeyLanes<ReturnType<typeof item>>()
    assert.deepEqual(
      ['a', 'b', 'a', undefined, undefined, '__proto__', '__proto__'].map(key => lanes.enter(item(key))),
      [true, true, false, true, true, true, false],
    )
    assert.equal(lanes.size, 2)
  })

  test('let the next one through, in order, when the one before is done with; nobody passes it', () => {
    const lanes = createKeyLanes<ReturnType<typeof item>>()
    for (const n of [1, 2, 3]) lanes.enter(item('a', n))
    assert.equal(lanes.next(), undefined)
    lanes.release('a')
    assert.equal(lanes.enter(item('a', 4)), false, 'who comes now must not pass those that wait')
    assert.equal(lanes.next()?.n, 2)
    assert.equal(lanes.next(), undefined)
    lanes.release('a')
    lanes.release(undefined)
    assert.equal(lanes.next()?.n, 3)
    lanes.release('a')
    assert.equal(lanes.next()?.n, 4)
    lanes.release('a')
    assert.equal(lanes.enter(item('a')), true)
    assert.equal(lanes.size, 0)
  })
})
