import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { SubscribeRequest } from '../../core/protocol/admin.ts'
import type { Client } from '../../sdk/src/client.ts'
import type { ConsumerOptions } from '../../sdk/src/consumer-options.ts'
import type { MessageHandler } from '../../sdk/src/message.ts'
import { live } from './java-client.ts'
import { openNodeClient } from './node-client.ts'
import { createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
let client: Client
beforeEach(async () => {
  service = openService({ settings: { pullHoldMs: 5_000 } })
  client = openNodeClient(service)
  await createTopic(service, 't1', 1)
  await createGroup(service, 'g1', ['t1'])
})
afterEach(async () => {
  await service.pass(client.close())
  await service.close()
})

const change = (settings: SubscribeRequest) => service.call('subscribe', settings, { groupName: 'g1', topicName: 't1' })
/** Of the queue, and of those of the fail topic. */
async function lags(): Promise<number[]> {
  // A read of a group is shared for so long, and need not know of the last commits.
  service.clock.advance(100)
  const { queues } = await service.call('getGroup', undefined, { groupName: 'g1' })
  return queues.map(({ lag }) => lag)
}

async function consume(handler: MessageHandler, options: Partial<ConsumerOptions> = {}) {
  const consumer = client.consumer({ groupName: 'g1', topics: { t1: handler }, ...options })
  await service.pass(consumer.start())
  return consumer
}

/** Fails these bodies, and notes what it was given. */
function failing(...bad: string[]) {
  const seen: [body: string, retryCount: number, atMs: number][] = []
  const handler: MessageHandler = messages => {
    for (const { body, retryCount } of messages) seen.push([body, retryCount, service.clock.now()])
    return messages.filter(({ body }) => bad.includes(body)).map(({ offset }) => offset)
  }
  return { seen, handler, told: () => seen.map(([body, retryCount]) => `${body} ${retryCount}`) }
}

describe('what the handler of a Node consumer fails on', () => {
  test('is executed exactly retryCount times more, later and later, and then rests; the queue goes on at once', async () => {
    await change({ consumerBatchSize: 10, retryCount: 2, retryDelaySeconds: 10, retryBackoffRate: 3 })
    const { seen, handler, told } = failing('bad')
    await consume(handler)
    await publish(service, ['m1', 'bad', 'm2'])
    await live(service, 5_000)
    assert.deepEqual(told(), ['m1 0', 'bad 0', 'm2 0'])
    assert.equal((await lags())[0], 0)
    await live(service, 120_000)
    assert.deepEqual(told().slice(3), ['bad 1', 'bad 2'])
    const [first = 0, second = 0, third = 0] = seen.filter(([body]) => body === 'bad').map(([, , atMs]) => atMs)
    assert.ok(second - first >= 10_000 && third - second >= 30_000)
    assert.deepEqual(await lags(), [0, 0, 0], 'the dead letter is consumed as well')
  })

  test('is executed when its delay is over, not a tenth later, and a delay that is changed meanwhile counts from then on', async () => {
    for (const [changedTo, expected] of [
      [1, [1_000, 2_000, 4_000]],
      [3, [1_000, 6_000, 12_000]],
    ] as const) {
      await change({ retryCount: 3, retryDelaySeconds: 1, retryBackoffRate: 2 })
      const { seen, handler } = failing('bad')
      const consumer = await consume(handler)
      // Long enough for the pauses between pulls to be as long as they get.
      await live(service, 60_000)
      await publish(service, ['bad'])
      while (seen.length < 2) await live(service, 50)
      await change({ retryDelaySeconds: changedTo })
      await live(service, 30_000)
      const delays = seen.slice(1).map(([, , atMs], index) => atMs - (seen[index]?.[2] ?? 0))
      assert.equal(delays.length, 3)
      for (const [index, ms] of expected.entries()) {
        const delay = delays[index] ?? 0
        assert.ok(delay >= ms && delay <= ms * 1.1, `${delay} ms instead of ${ms}`)
      }
      await service.pass(consumer.stop())
    }
  })

  test('is executed in place as often where the order is strict, and rests in the fail topic', async () => {
    await change({ threadSize: 1, retryCount: 2, retryInPlace: true })
    const { handler, told } = failing('bad')
    await consume(handler)
    await publish(service, ['m1', 'bad', 'm2'])
    await live(service, 60_000)
    assert.deepEqual(told(), ['m1 0', 'bad 0', 'bad 0', 'bad 0', 'm2 0'])
    assert.deepEqual(await lags(), [0, 0, 0])
  })

  test('is not executed again without retries, also where it takes too long', async () => {
    await change({ timeoutSeconds: 1, retryCount: 0, retryDelaySeconds: 0 })
    let calls = 0
    await consume(() => {
      calls++
      return new Promise(() => undefined)
    })
    await publish(service, ['m1', 'm2'])
    await live(service, 30_000)
    assert.equal(calls, 2)
    assert.deepEqual(await lags(), [0, 0, 0])
  })

  test('is committed by hand with what failed in it', async () => {
    await change({ consumerBatchSize: 10, retryDelaySeconds: 1 })
    const seen: string[] = []
    await consume(
      async (messages, { commit }) => {
        seen.push(...messages.map(({ body, retryCount }) => `${body} ${retryCount}`))
        const failed = messages.filter(({ retryCount }) => retryCount === 0).map(({ offset }) => offset)
        await commit(messages.at(-1)?.offset ?? 0, { failed })
      },
      { commit: 'manual' },
    )
    await publish(service, ['m1', 'm2'])
    await live(service, 30_000)
    assert.deepEqual(seen, ['m1 0', 'm2 0', 'm1 1', 'm2 1'])
    assert.deepEqual(await lags(), [0, 0, 0])
  })
})

describe('a Node consumer', () => {
  test('honours tags and delays, and changes of them, by the clock of the service', async () => {
    await change({ consumerBatchSize: 10, tag: 'a', delayProcessTimeSeconds: 30 })
    const { seen, handler } = failing()
    await consume(handler)
    const messages = ['a', 'b', 'a'].map((tag, index) => ({ tag, body: `m${index}` }))
    const publishedAtMs = service.clock.now()
    await service.pass(client.publish('t1', messages))
    await live(service, 29_000)
    assert.equal(seen.length, 0)
    await live(service, 3_000)
    assert.deepEqual(
      seen.map(([body]) => body),
      ['m0', 'm2'],
    )
    assert.ok(seen.every(([, , atMs]) => atMs >= publishedAtMs + 30_000))
    await live(service, 2_000)
    assert.deepEqual(await lags(), [0, 0, 0])
    await service.pass(client.publish('t1', messages))
    await live(service, 2_000)
    await change({ tag: '', delayProcessTimeSeconds: 0 })
    await live(service, 12_000)
    assert.equal(seen.length, 4, 'what was passed over stays so')
    await service.pass(client.publish('t1', messages))
    await live(service, 3_000)
    assert.equal(seen.length, 7)
  })
})
