import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { PublishError } from '../../sdk/src/errors.ts'
import type { PreSendListener } from '../../sdk/src/listeners.ts'
import type { NewMessage } from '../../sdk/src/message.ts'
import { settle } from './manual-clock.ts'
import { failureOf, setUpProducer } from './producer-setup.ts'

const setUp = (preSend: PreSendListener) => setUpProducer({ queues: 1, listeners: { preSend } })
const stored = ({ service }: ReturnType<typeof setUp>) => service.log.stored('orders').map(({ message }) => message)

suite('a preSend listener', () => {
  test('sees each message and its topic, one of an array too', async () => {
    const seen: string[] = []
    const { client, producer } = setUp(({ body }, topicName) => {
      seen.push(`${topicName}: ${body}`)
    })
    await client.publish('orders', { body: 'a' })
    await producer.publish('orders', [{ body: 'b' }, { body: 'c' }])
    producer.publishAsync('orders', { body: 'd' })
    assert.deepEqual(seen, ['orders: a', 'orders: b', 'orders: c', 'orders: d'])
  })

  test('may change what it is given, which is a copy', async () => {
    const all = setUp(message => {
      message.tag = 'changed'
    })
    const message: NewMessage = { body: 'a' }
    await all.producer.publish('orders', message)
    assert.deepEqual(stored(all), [{ body: 'a', tag: 'changed' }])
    assert.deepEqual(message, { body: 'a' })
  })

  test('may return another message', async () => {
    const all = setUp(({ body, head }) => ({ body: body.toUpperCase(), head: { ...head, trace: '1' } }))
    await all.producer.publish('orders', { body: 'a', head: { name: 'x' } })
    assert.deepEqual(stored(all), [{ body: 'A', head: { name: 'x', trace: '1' } }])
  })

  for (const [what, thrown] of [
    ['an error', new Error('no, said the listener')],
    ['undefined', undefined],
  ] as const) {
    test(`that throws ${what} makes the whole publish fail with that as its cause, and nothing is sent`, async () => {
      const all = setUp(({ body }) => {
        if (body === 'b') throw thrown
      })
      const error = await failureOf(all.producer.publish('orders', [{ body: 'a' }, { body: 'b' }]))
      assert.deepEqual([error.code, error.outcome, error.cause], ['pre_send_failed', 'not_stored', thrown])
      assert.equal(all.service.requests.length, 0)
      await all.producer.publish('orders', { body: 'c' })
      assert.deepEqual(stored(all), [{ body: 'c' }])
    })
  }

  test('that throws makes publishAsync return false, and tells', async () => {
    const { producer, events } = setUp(() => {
      throw new Error('no')
    })
    assert.equal(producer.publishAsync('orders', { body: 'a' }), false)
    await settle()
    assert.ok(events[0]?.type === 'publish_failed' && events[0].error.code === 'pre_send_failed')
  })

  test('cannot pass the limits of a message', async () => {
    const { producer, service } = setUp(message => ({ ...message, tag: 't'.repeat(1_001) }))
    const error = await failureOf(producer.publish('orders', { body: 'a' }))
    assert.match(error.message, /tag has 1001 characters/)
    assert.equal(service.requests.length, 0)
  })

  test('that is not asked for what is no message', async () => {
    let calls = 0
    const { producer } = setUp(() => {
      calls++
      return undefined
    })
    const error = await failureOf(producer.publish('orders', null as never))
    assert.match(error.message, /message is null/)
    assert.equal(calls, 0)
  })

  test('must return at once: a promise is refused, also one that rejects', async () => {
    const { producer } = setUp((async () => {
      throw new Error('no')
    }) as never)
    const error = await failureOf(producer.publish('orders', { body: 'a' }))
    assert.ok(error instanceof PublishError)
    assert.match(error.message, /returned a promise; it must return at once/)
  })
})
