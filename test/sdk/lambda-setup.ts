import assert from 'node:assert/strict'
import { type EndpointName, endpoints } from '../../core/protocol/endpoints.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import type { ClientEvent } from '../../sdk/src/events.ts'
import { readHttpAnswer } from '../../sdk/src/http-answer.ts'
import {
  type LambdaConsumerOptions,
  type LambdaContext,
  type LambdaReport,
  lambdaConsumer,
} from '../../sdk/src/lambda/lambda-consumer.ts'
import type { Transport } from '../../sdk/src/transport.ts'
import { seededRandom } from '../support/random.ts'
import { createTopic } from '../wire/scene.ts'
import { openService, type Service, turn } from '../wire/service.ts'

const byPath = new Map<string, EndpointName>(
  Object.entries(endpoints).map(([name, { path }]) => [path, name as EndpointName]),
)

export function endpointAt(path: string): EndpointName {
  const name = byPath.get(path)
  assert.ok(name, path)
  return name
}

export type Call = { name: EndpointName; request: { [field: string]: unknown }; atMs: number }

type Fault = 'unreachable' | 'lost answer' | undefined

/** The service, with topic `orders` and the claimed group `billing`, and as many functions as a test makes. */
export async function setUp({ queues = 2, settings = {} }: { queues?: number; settings?: object } = {}) {
  const service = openService()
  const queueIds = await createTopic(service, 'orders', queues)
  await service.call('createGroup', { name: 'billing', mode: 'claimed' })
  await service.call(
    'subscribe',
    { threadSize: 1, consumerBatchSize: 1, ...settings },
    { groupName: 'billing', topicName: 'orders' },
  )
  let seed = 0

  /** A function, in a container of its own. */
  function lambda(options: Partial<LambdaConsumerOptions> = {}) {
    const { clock } = service
    const calls: Call[] = []
    const events: ClientEvent[] = []
    const network = {
      /** Nothing gets through any more. */
      isCut: false,
      /** What comes of a request instead of an answer. */
      fault: (_: Call): Fault | Promise<Fault> => undefined,
      underWay: 0,
    }
    const transport: Transport = async (path, request, { timeoutMs, signal }) => {
      const call = { name: endpointAt(path), request: { ...request }, atMs: clock.monotonic() }
      calls.push(call)
      network.underWay++
      try {
        return await answered(call, timeoutMs, signal)
      } finally {
        network.underWay--
      }
    }

    async function answered(call: Call, timeoutMs: number, signal: AbortSignal | undefined): Promise<unknown> {
      const fault = network.isCut ? 'unreachable' : await network.fault(call)
      if (fault === 'unreachable') throw new PmqClientError('unreachable', `${call.name}: unreachable`)
      const waiting = new AbortController()
      const given = new Promise<never>((_, reject) => {
        const fail = (code: 'aborted' | 'timeout') => reject(new PmqClientError(code, `${call.name}: ${code}`))
        signal?.addEventListener('abort', () => fail('aborted'), { once: true })
        if (signal?.aborted) fail('aborted')
        void clock.sleep(timeoutMs, waiting.signal).then(() => fail('timeout'))
      })
      given.catch(() => undefined)
      try {
        const { status, text } = await Promise.race([service.send(call.name, call.request), given])
        if (network.isCut || fault === 'lost answer') throw new PmqClientError('connection_lost', `${call.name}: lost`)
        const incoming = { statusCode: status, headers: {} } as Parameters<typeof readHttpAnswer>[0]
        return readHttpAnswer(incoming, [Buffer.from(text)], call.name, clock.now())
      } finally {
        waiting.abort()
      }
    }

    const handler = lambdaConsumer({
      transport,
      clock,
      random: seededRandom(++seed),
      onEvent: event => events.push(event),
      groupName: 'billing',
      topics: { orders: () => undefined },
      ...options,
    })

    /** Begins an invocation that may last for so long. */
    const start = (limitMs = 60_000, event: unknown = {}) =>
      handler(event, contextOf(service, limitMs, `request-${calls.length}`))

    return {
      handler,
      start,
      invoke: (limitMs?: number, event?: unknown): Promise<LambdaReport> => service.pass(start(limitMs, event)),
      calls,
      named: (name: string) => calls.filter(call => call.name === name),
      events,
      types: () => events.map(({ type }) => type),
      network,
    }
  }

  /** Publishes bodies to a queue. */
  async function publish(bodies: readonly string[], queueId = queueIds[0]) {
    const msgs = bodies.map(body => ({ body, partitionInfo: { queueId } }))
    const { suc, msg } = await service.call('publish', { topicName: 'orders', msgs })
    assert.equal(suc, true, msg)
  }

  /** By queue: how far it is committed, and who holds it. */
  async function places() {
    const group = await service.call('getGroup', undefined, { groupName: 'billing' })
    return queueIds.map(queueId => {
      const place = group.queues.find(queue => queue.queueId === queueId && queue.topicName === 'orders')
      assert.ok(place)
      return place
    })
  }

  return {
    service,
    clock: service.clock,
    queueIds,
    lambda,
    publish,
    places,
    committed: async () => (await places()).map(({ offset }) => offset),
    claimants: async () => (await places()).map(({ claimant }) => claimant),
  }
}

function contextOf({ clock }: Service, limitMs: number, awsRequestId: string): LambdaContext {
  const endsAtMs = clock.monotonic() + limitMs
  return { functionName: 'bill', awsRequestId, getRemainingTimeInMillis: () => endsAtMs - clock.monotonic() }
}

/** Lets time pass, step by step, so that everything that is due in between happens. */
export async function passTime({ clock }: Service, ms: number, stepMs = 50): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
    await turn()
    clock.advance(Math.min(stepMs, ms - passedMs))
  }
  await turn()
}

/** Notes each message that it gets, as `queue:offset`. */
export function recorder() {
  const seen: string[] = []
  return {
    seen,
    handler(messages: readonly { queueId: number; offset: number }[]) {
      for (const { queueId, offset } of messages) seen.push(`${queueId}:${offset}`)
    },
  }
}

export const bodies = (count: number) => Array.from({ length: count }, (_, index) => `m${index + 1}`)
