import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { StoreError } from '../../core/store.ts'
import { tick } from '../../core/tick/tick.ts'
import type { ClientEvent } from '../../sdk/src/events.ts'
import { intercept } from '../core/scripted-store.ts'
import { seededRandom } from '../support/random.ts'
import { openNodeClient } from './node-client.ts'
import { createGroup, createTopic, publish } from './scene.ts'
import { openService, turn } from './service.ts'

const perQueue = 50

for (const seed of [1, 2, 3]) {
  test(`Node consumers of a store that refuses 30 % of all operations lose and repeat nothing, and tell what is slow (seed ${seed})`, async () => {
    const chance = seededRandom(seed)
    let isThrottled = false
    const service = openService({
      through: store =>
        intercept(store, async ({ operation, run }) => {
          if (!isThrottled || chance() >= 0.3) return run()
          if (operation === 'appendBatch') return { outcome: 'throttled' }
          throw new StoreError('throttled', `${operation} was refused`)
        }),
    })
    const live = async (seconds: number) => {
      for (let step = 0; step < seconds * 4; step++) {
        service.clock.advance(250)
        await turn()
        if (step % 20 === 0) await tick(service.core)
      }
    }
    const queueIds = await createTopic(service, 't1', 4)
    await createGroup(service, 'g1', ['t1'])
    const settings = { consumerBatchSize: 5, retryCount: 1, retryDelaySeconds: 1 }
    await service.call('subscribe', settings, { groupName: 'g1', topicName: 't1' })

    const seen: string[] = []
    const events: ClientEvent[] = []
    const clients = [1, 2].map(name => openNodeClient(service, seed * 10 + name))
    for (const client of clients) {
      const consumer = client.consumer({
        groupName: 'g1',
        maxPullBytes: 1,
        topics: {
          t1(messages) {
            seen.push(...messages.map(({ body, retryCount }) => `${body} ${retryCount}`))
            const failed = messages.filter(({ body, retryCount }) => body.endsWith('7') && retryCount === 0)
            return failed.map(({ offset }) => offset)
          },
        },
        onEvent: event => events.push(event),
      })
      await service.pass(consumer.start())
    }
    await live(10)
    const bodies = queueIds.flatMap(queueId => Array.from({ length: perQueue }, (_, index) => `${queueId}/${index}`))
    for (let first = 0; first < bodies.length; first += 5) {
      await publish(service, bodies.slice(first, first + 5), queueIds[Math.floor(first / perQueue)])
    }
    // Rebalances that are refused are logged, and made up for.
    mock.method(console, 'error', () => {})
    isThrottled = true
    await live(180)
    isThrottled = false
    await live(30)
    mock.restoreAll()

    const failed = bodies.filter(body => body.endsWith('7'))
    const expected = [...bodies.map(body => `${body} 0`), ...failed.map(body => `${body} 1`)]
    assert.deepEqual(seen.toSorted(), expected.toSorted())
    const { queues } = await service.call('getGroup', undefined, { groupName: 'g1' })
    assert.ok(queues.every(({ lag }) => lag === 0))
    const slow = events.flatMap(event =>
      event.type === 'request_failed' && event.error.code === 'throttled' ? [event.operation] : [],
    )
    for (const operation of ['pullData', 'commitOffset', 'publishAndUpdateResultFailMsg'] as const) {
      assert.ok(slow.includes(operation), operation)
    }
    await service.pass(Promise.all(clients.map(client => client.close())))
    await service.close()
  })
}
