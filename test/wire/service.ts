import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import type { APIGatewayProxyEventV2 } from 'aws-lambda'
import * as v from 'valibot'
import { createLocalBus } from '../../bin/host/bus.ts'
import { matchRoute, toContext, toEvent } from '../../bin/host/gateway.ts'
import { type Core, createCore, defaultSettings, groupHasChanged, type Settings } from '../../core/core.ts'
import { rebalance } from '../../core/group/rebalance.ts'
import { type Endpoint, type EndpointName, endpoints, type FunctionName } from '../../core/protocol/endpoints.ts'
import { limits } from '../../core/protocol/limits.ts'
import type { Store } from '../../core/store.ts'
import { adminOptions, adminRoutes } from '../../functions/edge/admin-routes.ts'
import { consumeOptions, consumeRoutes } from '../../functions/edge/consume-routes.ts'
import { newSecret } from '../../functions/edge/core.ts'
import { type HttpHandler, httpHandler } from '../../functions/edge/http.ts'
import { silentBus } from '../../functions/edge/lazy-bus.ts'
import { publishRoutes } from '../../functions/edge/publish-routes.ts'
import { openSqliteStore } from '../../store/sqlite/open.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'
import { seededRandom } from '../support/random.ts'

/**
 * The service as API Gateway sees it: the functions' own handlers over a store, with the bus in the process and a clock
 * that stands still. Whatever passes through `call` is also held against the endpoint's schema, and against the size
 * that a Lambda may answer with.
 */
export type Service = {
  core: Core
  clock: ManualClock
  /** Sends a request that has to be answered with success (which a `suc: false` is), and returns that answer. */
  call<N extends EndpointName>(endpoint: N, request?: unknown, parameters?: Parameters): Promise<AnswerOf<N>>
  /** Sends anything: a string is the very text of the body, of a GET the query. */
  send(endpoint: EndpointName, request?: unknown, parameters?: Parameters): Promise<Reply>
  /** Hands a function an event. */
  invoke(functionName: FunctionName, event: APIGatewayProxyEventV2): Promise<Reply>
  /** Lets time pass until a promise is settled, at most a minute of it. */
  pass<T>(promise: Promise<T>): Promise<T>
  /** Ends what was begun, and closes the store. */
  close(): Promise<void>
}
export type Parameters = Record<string, string>
type AnswerOf<N extends EndpointName> = v.InferOutput<(typeof endpoints)[N]['response']>
export type Reply = { status: number; headers: Record<string, string>; text: string; json: Json }
export type Json = { [field: string]: unknown }

export type ServiceOptions = {
  store?: Store
  /** Stands between the core and the store. */
  through?: (store: Store) => Store
  settings?: Partial<Settings>
  /** By default one that stands still, on a Monday in 2024: times as clients know them. */
  clock?: ManualClock
}

/** What a Lambda may answer with: 6 MB of JSON, in which the body is a text. */
const maxAnswerBytes = 6_291_556
const stepMs = 50
const patienceMs = 60_000

export function openService(options: ServiceOptions = {}): Service {
  const { store = openSqliteStore(':memory:'), through = same => same, settings } = options
  const { clock = createManualClock(Date.UTC(2024, 0, 1, 12, 30, 15, 7)) } = options
  let ids = 0
  const bus = createLocalBus(async groupName => {
    await rebalance(core, groupName)
  })
  const core = createCore({
    store: through(store),
    clock,
    random: seededRandom(1),
    newId: () => `id-${++ids}`,
    newSecret,
    bus: {
      ...silentBus,
      async groupChanged(groupName) {
        groupHasChanged(core, groupName)
        await bus.groupChanged(groupName)
      },
    },
    settings: { ...defaultSettings, ...settings },
  })
  const handlers: Record<FunctionName, HttpHandler> = {
    publish: httpHandler(core, publishRoutes),
    consume: httpHandler(core, consumeRoutes, consumeOptions),
    admin: httpHandler(core, adminRoutes, adminOptions),
  }
  let requests = 0

  async function invoke(functionName: FunctionName, event: APIGatewayProxyEventV2): Promise<Reply> {
    const result = await handlers[functionName](event, toContext(`request-${++requests}`))
    await bus.settled()
    assert.ok(
      Buffer.byteLength(JSON.stringify(result)) <= maxAnswerBytes,
      'the answer is larger than a Lambda may give',
    )
    const { statusCode = 0, headers = {}, body = '' } = result
    const isText = String(headers['content-type']).startsWith('text/')
    const json = isText ? {} : JSON.parse(body)
    return { status: statusCode, headers: headers as Record<string, string>, text: body, json }
  }

  async function send(name: EndpointName, request?: unknown, parameters: Parameters = {}): Promise<Reply> {
    const endpoint: Endpoint = endpoints[name]
    return invoke(endpoint.function, eventFor(endpoint, textOf(endpoint, request), parameters))
  }

  return {
    core,
    clock,
    send,
    invoke,
    async call<N extends EndpointName>(name: N, request?: unknown, parameters?: Parameters) {
      const endpoint: Endpoint = endpoints[name]
      const reply = await send(name, request, parameters)
      assert.equal(reply.status, endpoint.status ?? 200, reply.text)
      const parsed = v.safeParse(endpoint.response, reply.json)
      assert.ok(parsed.success, `${name} answers other than its schema says: ${reply.text}`)
      assert.deepEqual(JSON.parse(JSON.stringify(parsed.output)), reply.json, 'its schema does not know all of it')
      return reply.json as AnswerOf<N>
    },
    async pass(promise) {
      let isSettled = false
      const settle = () => {
        isSettled = true
      }
      promise.then(settle, settle)
      for (let passedMs = 0; passedMs <= patienceMs; passedMs += stepMs) {
        await turn()
        if (isSettled) return promise
        clock.advance(stepMs)
      }
      throw new Error('a minute was not enough')
    },
    async close() {
      core.arrivals.close()
      await bus.settled()
      await core.store.close()
    },
  }
}

/** Lets everything run that needs no time. */
export async function turn(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
}

export function textOf({ method }: Endpoint, request: unknown): string {
  if (request === undefined) return ''
  if (typeof request === 'string') return request
  return method === 'GET' ? String(new URLSearchParams(request as Parameters)) : JSON.stringify(request)
}

/** The event that API Gateway would make of a request with this body, or of a GET with this query. */
export function eventFor(endpoint: Endpoint, text: string, parameters: Parameters = {}): APIGatewayProxyEventV2 {
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name) => parameters[name] ?? '')
  const matched = matchRoute(endpoint.method, path)
  assert.ok(matched, `no route for ${endpoint.method} ${path}`)
  const request = {
    method: endpoint.method,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    httpVersion: '1.1',
    socket: { remoteAddress: '10.0.0.7' },
  } as unknown as IncomingMessage
  const [query, body] = endpoint.method === 'GET' ? [text, ''] : ['', text]
  return toEvent(request, matched, path, query, Buffer.from(body), 'request')
}

/** A request of exactly so many bytes, by a field that the schemas do not know. */
export function requestOfBytes(request: object, bytes = limits.maxRequestBytes): string {
  const text = JSON.stringify({ ...request, padding: '' })
  return text.replace(/""\}$/, `"${'x'.repeat(bytes - Buffer.byteLength(text))}"}`)
}
