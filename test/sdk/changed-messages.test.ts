import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ConsumerOptions } from '../../sdk/src/consumer-options.ts'
import type { Message, MessageHandler } from '../../sdk/src/message.ts'
import { setUp } from './consumer-setup.ts'

const failTopicName = 'billing_orders_fail'
const original = { body: '{"n":1}', key: 'k', tag: 't', bizId: 'b', traceId: 'x', head: { name: 'value' } }

/** Everything that JavaScript lets one do to messages and their array. */
function spoil(messages: readonly Message[]) {
  for (const message of messages as unknown as Record<string, unknown>[]) {
    Object.assign(message.head as object, { name: 7, more: { nested: true } })
    for (const name of Object.keys(message)) message[name] = { spoilt: message[name] }
    delete message.head
  }
  ;(messages as Message[]).length = 0
}

const noted = ({ offset, body, head }: Message) => [offset, body, { ...head }]

suite('what is done to messages', () => {
  const changes: [string, Partial<ConsumerOptions>, (messages: readonly Message[]) => void][] = [
    ['by the handler', {}, spoil],
    ['by the handler, in order of keys', { ordering: 'key' }, spoil],
    ['by the filter', { listeners: { filter: message => spoil([message]) === undefined } }, () => undefined],
    ['by preHandle', { listeners: { preHandle: messages => spoil(messages) === undefined } }, () => undefined],
    ['by postHandle', { listeners: { postHandle: spoil } }, () => undefined],
  ]
  for (const [who, options, change] of changes) {
    test(`${who} changes nothing of what goes to the fail topic, is repeated, and is committed`, async () => {
      const settings = { threadSize: 1, consumerBatchSize: 10, retryCount: 2, retryInPlace: true }
      const { clock, consumer, log, committed } = setUp({ queues: 1, settings, hasFailTopics: true })
      const seen: unknown[][] = []
      const handler: MessageHandler = messages => {
        seen.push(...messages.map(noted))
        const failed = messages.map(({ offset }) => offset).filter(offset => offset === 2)
        change(messages)
        return failed
      }
      const { start, stop, status } = consumer(handler, options)
      await start()
      log.put(1, ['a', original, 'b'])
      await clock.advance(60_000)
      const repeated = [2, original.body, original.head]
      assert.deepEqual(
        seen.filter(([offset]) => offset === 2),
        [repeated, repeated],
      )
      assert.deepEqual(
        log.stored(failTopicName).map(({ message }) => message),
        [{ ...original, retryCount: 2 }],
      )
      assert.deepEqual([committed(), status().queues[0]?.behindKeys], [[3], 0])
      await stop()
    })
  }

  test('and an error afterwards is a failure like any other, also where it is committed by hand', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1, hasFailTopics: true, settings: { retryCount: 1 } })
    const { start, stop } = consumer(
      async (messages, { commit }) => {
        const offsets = messages.map(({ offset }) => offset)
        spoil(messages)
        await commit(offsets.at(-1) ?? 0, { failed: offsets })
        throw new Error('too late')
      },
      { commit: 'manual' },
    )
    await start()
    log.put(1, [original])
    await clock.advance(5_000)
    assert.deepEqual(
      log.stored(failTopicName).map(({ message }) => message),
      [{ ...original, retryCount: 1 }],
    )
    assert.deepEqual(committed(), [1])
    await stop()
  })
})
