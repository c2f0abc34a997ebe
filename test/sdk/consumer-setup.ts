import { createClient } from '../../sdk/src/client.ts'
import type { ClientOptions } from '../../sdk/src/client-options.ts'
import type { ConsumerOptions } from '../../sdk/src/consumer-options.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { ClientEvent } from '../../sdk/src/events.ts'
import type { Message, MessageHandler } from '../../sdk/src/message.ts'
import type { Transport } from '../../sdk/src/transport.ts'
import type { Settings } from './fake-groups.ts'
import { createFakeService } from './fake-service.ts'
import { createManualClock, seededRandom } from './manual-clock.ts'

/** A service with topic `orders`, group `billing`, and as many consumers of it as a test makes. */
export function setUp({
  queues = 2,
  settings = {},
  hasFailTopics = false,
}: {
  queues?: number
  settings?: Partial<Settings>
  hasFailTopics?: boolean
} = {}) {
  const clock = createManualClock()
  const service = createFakeService(clock)
  const queueIds = service.log.createTopic('orders', queues)
  service.groups.createGroup('billing', ['orders'], settings, hasFailTopics)
  let seed = 0

  /** A client of its own, as another process would have. */
  function consumer(
    handler: MessageHandler,
    options: Partial<ConsumerOptions> = {},
    clientOptions: ClientOptions = {},
  ) {
    const events: ClientEvent[] = []
    /** Between this client alone and the service; a process that was killed is for ever cut off. */
    const network = { isCut: false }
    const transport: Transport = async (...request) => {
      if (network.isCut) throw new PmqClientError('unreachable', 'cut off')
      const answer = await service.transport(...request)
      if (network.isCut) throw new PmqClientError('connection_lost', 'cut off')
      return answer
    }
    const client = createClient({
      transport,
      clock,
      random: seededRandom(++seed),
      onEvent: event => events.push(event),
      ...clientOptions,
    })
    const made = client.consumer({ groupName: 'billing', topics: { orders: handler }, ...options })
    const types = () => events.map(({ type }) => type)
    return {
      ...made,
      client,
      network,
      events,
      types,
      count: (type: ClientEvent['type']) => types().filter(t => t === type).length,
    }
  }

  const committed = () => queueIds.map(queueId => service.groups.committed('billing', queueId))
  return { clock, service, groups: service.groups, log: service.log, queueIds, consumer, committed }
}

/** Notes each message that it gets, as `queue:offset`, and is done with it at once. */
export function recorder() {
  const seen: string[] = []
  const handler = (messages: readonly Message[]) => {
    for (const { queueId, offset } of messages) seen.push(`${queueId}:${offset}`)
  }
  return { seen, handler }
}

/** `queue:1` to `queue:count`. */
export function upTo(queueId: number, count: number, from = 1): string[] {
  return Array.from({ length: count - from + 1 }, (_, index) => `${queueId}:${from + index}`)
}

export const bodies = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`)
