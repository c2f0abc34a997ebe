import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { MessageHandler } from '../../sdk/src/message.ts'
import { failedOf, list, only } from './failing.ts'
import { live } from './java-client.ts'
import { openNodeClient } from './node-client.ts'
import { viewGroup } from './operator.ts'
import { createGroup, createTopic, publish } from './scene.ts'
import { openService, type Service } from './service.ts'

let service: Service
beforeEach(async () => {
  service = openService({ settings: { pullHoldMs: 5_000 } })
  await createTopic(service, 't1')
  await createGroup(service, 'g1', ['t1'])
  await service.call('subscribe', { retryCount: 2, retryDelaySeconds: 5, consumerBatchSize: 1 }, failedOf)
})
afterEach(() => service.close())

/** A process with a consumer. */
async function startProcess(handler: MessageHandler, seed = 1) {
  const client = openNodeClient(service, seed)
  const consumer = client.consumer({ groupName: 'g1', topics: { t1: handler } })
  await service.pass(consumer.start())
  return { consumer, end: () => service.pass(client.close()) }
}

describe('a message that always fails', () => {
  test('is handled as often as it may be, also if the process is restarted between the tries, and holds nothing up', async () => {
    const seen: string[] = []
    const handler: MessageHandler = ([message]) => {
      seen.push(message?.body ?? '')
      if (message?.body === 'm5') throw new Error('not this one')
    }
    await publish(
      service,
      Array.from({ length: 10 }, (_, i) => `m${i + 1}`),
    )
    // No process lives for as long as a retry waits.
    const states = new Set<string>()
    for (let seed = 1; seed <= 6; seed++) {
      const { end } = await startProcess(handler, seed)
      await live(service, 4_000)
      const { state, attempts, error } = await only(service)
      states.add(`${state} ${attempts}`)
      assert.equal(error, 'Error: not this one')
      await end()
    }
    assert.deepEqual([...states], ['retrying 1', 'retrying 2', 'exhausted 3'])
    assert.equal(seen.filter(body => body === 'm5').length, 3)
    assert.deepEqual(
      seen.filter(body => body !== 'm5'),
      ['m1', 'm2', 'm3', 'm4', 'm6', 'm7', 'm8', 'm9', 'm10'],
    )
    const [queue] = (await viewGroup(service)).queues
    assert.deepEqual([queue?.offset, queue?.lag], [10, 0])
  })
})

describe('a message that fails while its consumer stops', () => {
  test('is recorded, and committed past, before the stop is over', async () => {
    const begun = Promise.withResolvers<void>()
    const going = Promise.withResolvers<void>()
    const { consumer, end } = await startProcess(async () => {
      begun.resolve()
      await going.promise
      throw new Error('while stopping')
    })
    await publish(service, ['bad'])
    await service.pass(begun.promise)
    const stopped = consumer.stop()
    assert.deepEqual(await list(service), [])
    going.resolve()
    await service.pass(stopped)
    const { state, error } = await only(service)
    assert.deepEqual([state, error], ['retrying', 'Error: while stopping'])
    assert.equal((await viewGroup(service)).queues[0]?.offset, 1)
    await end()
  })
})
