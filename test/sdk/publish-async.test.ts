import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { PublishError, PublishResult } from '../../sdk/src/errors.ts'
import type { NewMessage } from '../../sdk/src/message.ts'
import { settle } from './manual-clock.ts'
import { setUpProducer as setUp } from './producer-setup.ts'

const slow = { kind: 'delay', ms: 100 } as const

suite('publishing without waiting', () => {
  test('says that a message is accepted, and tells later where it is', async () => {
    const { producer, service } = setUp()
    let told: unknown[] = []
    const onDone = (...args: unknown[]) => {
      told = args
    }
    assert.equal(producer.publishAsync('orders', { body: 'a' }, onDone), true)
    assert.deepEqual(told, [])
    await producer.flush()
    const [{ queueId, offset } = { queueId: 0, offset: 0 }] = service.log.stored('orders')
    assert.deepEqual(told, [undefined, { queueId, offset }])
  })

  test('tells of several messages at once', async () => {
    const { producer } = setUp()
    const told: (PublishResult[] | undefined)[] = []
    assert.equal(
      producer.publishAsync('orders', [{ body: 'a' }, { body: 'b' }], (_, results) => told.push(results)),
      true,
    )
    assert.equal(
      producer.publishAsync('orders', [], (_, results) => told.push(results)),
      true,
    )
    await producer.flush()
    assert.deepEqual(
      told.map(results => results?.length),
      [0, 2],
    )
  })

  test('returns false when there is no room, whatever whenFull says, and takes messages again when there is', async () => {
    for (const whenFull of ['wait', 'reject'] as const) {
      const { producer, service, clock } = setUp({ maxBufferedMessages: 2, maxBatchMessages: 2, whenFull })
      service.onRequest = () => slow
      const errors: (PublishError | undefined)[] = []
      const send = (body: string) => producer.publishAsync('orders', { body }, error => errors.push(error))
      assert.deepEqual([send('a'), send('b'), send('c')], [true, true, false])
      assert.equal(errors.length, 0, 'never before it has returned')
      await settle()
      assert.deepEqual(
        errors.map(error => [error?.code, error?.outcome]),
        [['buffer_full', 'not_stored']],
      )
      await clock.advance(1_000)
      assert.equal(send('d'), true)
      await clock.advance(1_000)
      assert.deepEqual(
        service.log.stored('orders').map(({ message }) => message.body),
        ['a', 'b', 'd'],
      )
    }
  })

  const refused: [string, (p: ReturnType<typeof setUp>['producer']) => boolean, string][] = [
    ['a message over the limit', p => p.publishAsync('orders', { body: 'x'.repeat(262_145) }), 'invalid_message'],
    ['what is no message', p => p.publishAsync('orders', undefined as never), 'invalid_message'],
    ['a name that no topic can have', p => p.publishAsync('a b', { body: '' }), 'invalid_message'],
    [
      'a message that cannot be read',
      p =>
        p.publishAsync('orders', {
          get body(): string {
            throw new Error('no')
          },
        }),
      'invalid_message',
    ],
  ]
  for (const [what, send, code] of refused) {
    test(`never throws: ${what} returns false and is told`, async () => {
      const { producer, events } = setUp()
      assert.equal(send(producer), false)
      assert.equal(events.length, 0)
      await settle()
      const [event] = events
      assert.ok(event?.type === 'publish_failed')
      assert.deepEqual([event.error.code, event.error.outcome], [code, 'not_stored'])
    })
  }

  test('returns false on a closed producer, and tells', async () => {
    const { producer, events } = setUp()
    await producer.close()
    assert.equal(producer.publishAsync('orders', { body: 'a' }), false)
    await settle()
    assert.ok(events[0]?.type === 'publish_failed' && events[0].error.code === 'closed')
  })

  test('a failure that no callback takes is told as an event, with how many messages it has, and none of their texts', async () => {
    const { producer, service, events } = setUp({ queues: 2 })
    service.refuse = queueId => (queueId === 2 ? 'queue 2 is full' : undefined)
    const messages = ['d', 'e', 'd'].map((key): NewMessage => ({ body: `secret ${key}`, key, head: { h: 'secret' } }))
    producer.publishAsync('orders', messages)
    producer.publishAsync('nowhere', { body: 'secret' })
    await producer.flush()
    const told = events.filter(event => event.type === 'publish_failed')
    assert.deepEqual(
      told.map(({ topicName, messages, error }) => [topicName, messages, error.code, error.outcome]),
      [
        ['orders', 1, 'refused', 'not_stored'],
        ['nowhere', 1, 'refused', 'not_stored'],
      ],
    )
    assert.doesNotMatch(told.map(({ error }) => error.message).join(), /secret/)
  })

  test('what succeeds, and what a callback takes, is no event', async () => {
    const { producer, events } = setUp()
    producer.publishAsync('orders', { body: 'a' })
    producer.publishAsync('nowhere', { body: 'a' }, () => undefined)
    await producer.flush()
    assert.deepEqual(events, [])
  })

  const faulty: [string, () => void][] = [
    [
      'throws',
      () => {
        throw undefined
      },
    ],
    ['rejects', async () => Promise.reject(new Error('no'))],
  ]
  for (const [what, onDone] of faulty) {
    test(`a callback that ${what} is told, and nothing else is disturbed`, async () => {
      const { producer, events, service } = setUp()
      for (let count = 0; count < 3; count++) producer.publishAsync('orders', { body: 'a' }, onDone)
      producer.publishAsync('a b', { body: 'a' }, onDone)
      await producer.flush()
      await settle()
      assert.equal(service.log.stored('orders').length, 3)
      assert.deepEqual(
        events.map(({ type }) => type),
        new Array(4).fill('callback_failed'),
      )
      await producer.close()
    })
  }

  test('fifty thousand messages faster than the store takes them never fill more than the bound', async () => {
    const count = 50_000
    const bound = 2_000
    const { producer, service, clock } = setUp({ maxBufferedMessages: bound })
    service.onRequest = operation => (operation === 'publish' ? slow : undefined)
    let held = 0
    let most = 0
    let refusals = 0
    const onDone = (error: PublishError | undefined) => {
      if (error?.code === 'buffer_full') refusals++
      else held--
    }
    const publishAll = async () => {
      for (let sent = 0; sent < count; ) {
        held++
        if (producer.publishAsync('orders', { body: `${sent}` }, onDone)) sent++
        else {
          held--
          await producer.flush()
        }
        most = Math.max(most, held)
      }
      await producer.close()
    }
    const done = publishAll()
    await clock.advance(60_000)
    await done
    assert.equal(service.log.stored('orders').length, count)
    assert.ok(most <= bound && refusals > 0, `${most} held, ${refusals} refused`)
  })
})
