import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Message } from '../../sdk/src/message.ts'
import { bodies, passTime, setUp } from './lambda-setup.ts'

const poison = 'm5'
const limitMs = 20_000

suite('a message that kills the invocation that handles it', () => {
  test('is a dead letter after two of them for each time that it may be handled, and all others are handled', async () => {
    const settings = { threadSize: 2, consumerBatchSize: 3, retryCount: 2, retryDelaySeconds: 1 }
    const world = await setUp({ queues: 2, settings })
    const { service, queueIds, lambda, publish, places } = world
    for (const queueId of queueIds) await publish(bodies(10), queueId)
    /** A message is known by its queue in the topic itself, where only one of the two has the poison. */
    const isPoison = (message: Message) =>
      message.body === poison && (message.retryCount > 0 || message.queueId === queueIds[0])

    const handled: string[] = []
    let deaths = 0
    for (let invocations = 0; invocations < 40; invocations++) {
      const { network, start, events } = lambda({
        topics: {
          orders(messages) {
            if (messages.some(isPoison)) {
              network.isCut = true
              return new Promise<void>(() => undefined)
            }
            for (const { body, retryCount } of messages) handled.push(`${body} ${retryCount}`)
          },
        },
      })
      const invocation = start(limitMs).catch(() => undefined)
      await passTime(service, limitMs + 2_000)
      await invocation
      if (network.isCut) deaths++
      else if (events.length === 0) break
    }
    const ordinary = handled.filter(text => text.endsWith(' 0'))
    assert.deepEqual(new Set(ordinary), new Set(bodies(10).map(body => `${body} 0`)))
    assert.equal(ordinary.filter(text => text === `${poison} 0`).length > 0, true, 'that of the other queue')
    assert.deepEqual(
      handled.filter(text => !text.endsWith(' 0')),
      [],
      'nothing else has failed',
    )
    assert.equal(deaths, 2 * 3)
    for (const { lag, deaths } of await places()) assert.deepEqual([lag, deaths], [0, undefined])
    const { queues } = await service.call('getTopicView', undefined, { topicName: 'billing_orders_fail' })
    const found: (number | undefined)[] = []
    for (const { queueId } of queues) {
      const request = { queueId, offsetStart: 0, topicName: 'billing_orders_fail', maxBytes: 100_000 }
      const { batches = [] } = await service.call('pullData', request)
      found.push(...batches.flatMap(({ msgs }) => msgs.map(message => message.retryCount)))
    }
    assert.deepEqual(found.toSorted(), [1, 2, 3])
    await service.close()
  })
})
