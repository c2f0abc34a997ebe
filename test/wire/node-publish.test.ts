import assert from 'node:assert/strict'
import { afterEach, suite, test } from 'node:test'
import type { PublishResponse } from '../../core/protocol/publish.ts'
import type { Store } from '../../core/store.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { Transport } from '../../sdk/src/transport.ts'
import { seededRandom } from '../support/random.ts'
import { openNodeClient } from './node-client.ts'
import { createTopic } from './scene.ts'
import { openService, type Service, type ServiceOptions } from './service.ts'

/** What the SDK's producer and the service promise together: a publish is stored once, whatever becomes of its answers. */

let service: Service
afterEach(() => service.close())

async function setUp(options: ServiceOptions = {}) {
  service = openService(options)
  const queueIds = await createTopic(service, 't1', 4)
  /** Where each body is, queue by queue. */
  async function stored() {
    const found: { queueId: number; offset: number; body: string; key: string | undefined }[] = []
    for (const queueId of queueIds) {
      const request = { queueId, offsetStart: 0, topicName: 't1', maxBytes: 4_000_000 }
      for (const { offset, msgs } of (await service.call('pullData', request)).batches ?? []) {
        for (const [index, { body, key }] of msgs.entries()) found.push({ queueId, offset: offset + index, body, key })
      }
    }
    return found
  }
  return { stored }
}

const byBody = (a: { body: string }, b: { body: string }) => (a.body < b.body ? -1 : 1)

/** Every publish of which the answer is lost at first, as often as told. */
function losingAnswers(times: number): (transport: Transport) => Transport {
  return transport => async (path, request, options) => {
    const answer = await transport(path, request, options)
    const { attempt } = request as { attempt?: number }
    if (attempt !== undefined && attempt <= times) throw new PmqClientError('connection_lost', 'the answer was lost')
    return answer
  }
}

suite('a publish by the SDK', () => {
  for (const times of [1, 3]) {
    test(`is stored once though its answer was lost ${times} times, whatever its text (100 publishes)`, async () => {
      const { stored } = await setUp()
      const client = openNodeClient(service, 1, losingAnswers(times))
      const texts = ['ü', '€uro', '𠮷野家', '👩‍👩‍👧‍👦', 'שלום', 'e\u0301', '\u0000\u001f', '\ud800', '\ufeff']
      const told: { body: string; queueId: number; offset: number; key: string | undefined }[] = []
      for (let index = 0; index < 100; index++) {
        const body = `${index} ${texts[index % texts.length]}`
        const key = index % 2 === 0 ? `k${index % 6}` : undefined
        told.push({ body, key, ...(await service.pass(client.publish('t1', { body, key }))) })
      }
      assert.deepEqual((await stored()).sort(byBody), told.sort(byBody))
      await client.close()
    })
  }

  test('is stored once though the store takes longer than the SDK waits for an answer', async () => {
    const slow = (store: Store): Store => ({
      ...store,
      async appendBatch(batch) {
        await service.clock.sleep(12_000)
        return store.appendBatch(batch)
      },
    })
    const { stored } = await setUp({ through: slow })
    const attempts: number[] = []
    const client = openNodeClient(service, 1, transport => async (path, request, options) => {
      const { attempt } = request as { attempt?: number }
      if (attempt !== undefined) attempts.push(attempt)
      const late = service.clock.sleep(options.timeoutMs).then(() => {
        throw new PmqClientError('timeout', 'no answer in time')
      })
      return Promise.race([transport(path, request, options), late])
    })
    const at = await service.pass(client.publish('t1', { body: 'a', key: 'k' }))
    await service.pass(client.publish('t1', { body: 'b', key: 'k' }))
    assert.ok(attempts.includes(2), String(attempts))
    assert.deepEqual(
      (await stored()).map(({ body }) => body),
      ['a', 'b'],
    )
    assert.equal(at.offset, 1)
    await client.close()
  })

  for (const refusesAllForMs of [0, 20_000]) {
    const when = refusesAllForMs > 0 ? `, after ${refusesAllForMs / 1000} s in which it refuses all` : ''
    test(`is stored once, in the order of its key, by a store that refuses 30 % of all writes for their pace${when}`, async () => {
      const chance = seededRandom(5)
      const isRefused = () => service.clock.monotonic() < refusesAllForMs || chance() < 0.3
      const throttling = (store: Store): Store => ({
        ...store,
        appendBatch: async batch => (isRefused() ? { outcome: 'throttled' } : store.appendBatch(batch)),
      })
      const { stored } = await setUp({ through: throttling })
      let slower = 0
      const client = openNodeClient(service, 1, transport => async (path, request, options) => {
        const answer = await transport(path, request, options)
        if ((answer as Partial<PublishResponse>).sleepTime) slower++
        return answer
      })
      const producer = client.producer({ maxBatchMessages: 10, publishTimeoutMs: 600_000 })
      const messages = Array.from({ length: 300 }, (_, index) => ({
        body: String(index).padStart(3, '0'),
        key: index % 3 === 0 ? undefined : `k${index % 5}`,
      }))
      const places = await service.pass(Promise.all(messages.map(message => producer.publish('t1', message))))
      assert.equal(slower > 0, refusesAllForMs > 0)
      const found = await stored()
      assert.deepEqual(
        found.toSorted(byBody),
        messages.map(({ body, key }, index) => ({ ...places[index], body, key })),
      )
      for (const key of ['k0', 'k1', 'k2', 'k3', 'k4']) {
        const bodies = found.filter(message => message.key === key).map(({ body }) => body)
        assert.deepEqual(bodies, bodies.toSorted())
      }
      await service.pass(client.close())
    })
  }

  test('is another message each time it is called: neither bizId nor tag nor body are compared', async () => {
    const { stored } = await setUp()
    const client = openNodeClient(service)
    const message = { body: 'a', bizId: 'order-1', tag: 'paid' }
    await service.pass(client.publish('t1', [message, message]))
    await service.pass(client.publish('t1', message))
    assert.equal((await stored()).length, 3)
    await client.close()
  })
})
