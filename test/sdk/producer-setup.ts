import assert from 'node:assert/strict'
import { createClient } from '../../sdk/src/client.ts'
import type { ClientOptions } from '../../sdk/src/client-options.ts'
import { PublishError } from '../../sdk/src/errors.ts'
import type { ClientEvent } from '../../sdk/src/events.ts'
import type { ProducerOptions } from '../../sdk/src/producer-options.ts'
import { createFakeService, type Fault } from './fake-service.ts'
import { createManualClock, seededRandom } from './manual-clock.ts'

type Plan = ProducerOptions & Pick<ClientOptions, 'listeners'> & { queues?: number; seed?: number }

/** A service with topic `orders`, and a producer of it. */
export function setUpProducer({ queues = 4, seed = 1, listeners, ...options }: Plan = {}) {
  const clock = createManualClock()
  const service = createFakeService(clock)
  service.log.createTopic('orders', queues)
  const events: ClientEvent[] = []
  const client = createClient({
    transport: service.transport,
    clock,
    random: seededRandom(seed),
    onEvent: event => events.push(event),
    listeners,
  })
  const producer = client.producer(options)
  /** Faults for the next publishes, one each; undefined lets one pass. */
  const meet = (...faults: (Fault | undefined)[]) => {
    service.onRequest = operation => (operation === 'publish' ? faults.shift() : undefined)
  }
  const publishes = () => service.requests.filter(({ operation }) => operation === 'publish')
  return { clock, service, client, producer, events, meet, publishes }
}

/** Takes a rejection apart; fails if there is none. */
export async function failureOf(promise: Promise<unknown>): Promise<PublishError> {
  const thrown = await promise.then(
    value => assert.fail(`resolved with ${JSON.stringify(value)}`),
    (error: unknown) => error,
  )
  assert.ok(thrown instanceof PublishError, String(thrown))
  return thrown
}
