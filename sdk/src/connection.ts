import type { Clock } from '../../core/protocol/clock.ts'
import { type Api, createApi } from './api.ts'
import type { ResolvedClientOptions } from './client-options.ts'
import { containListener, type EventListener } from './events.ts'
import { createFailover } from './failover.ts'
import { describeClient } from './identity.ts'
import type { Tracing } from './tracing/tracing.ts'
import { createHttpTransport, type HttpTransport } from './transport.ts'
import { createWarner } from './warn.ts'

/** What everything that speaks to one service shares. */
export type Connection = {
  api: Api
  clientIp: string
  clock: Clock
  random: () => number
  requestTimeoutMs: number
  tracing: Tracing | undefined
  emit: EventListener
  /** Ends the connections that no request uses. */
  endIdle(): void
  /** Ends all connections; requests under way and later ones are rejected. */
  close(): void
}

/** Makes what is needed to speak to the service. Nothing is connected before the first request. */
export function createConnection(options: Omit<ResolvedClientOptions, 'listeners'>): Connection {
  const { clock, random, requestTimeoutMs, tracing, onEvent } = options
  const { call, endIdle, close } = options.transport ? foreign(options.transport) : connect(options)
  const identity = describeClient()
  return {
    api: createApi(call, identity),
    clientIp: identity.clientIp,
    clock,
    random,
    requestTimeoutMs,
    tracing,
    emit: containListener(onEvent ?? createWarner()),
    endIdle,
    close,
  }
}

/** The connections of a transport that the user brings are his. */
const foreign = (call: HttpTransport['call']): HttpTransport => ({
  call,
  endIdle: () => undefined,
  close: () => undefined,
})

/** A transport to each of the servers, and a choice among them where there are several. */
function connect(options: Omit<ResolvedClientOptions, 'listeners'>): HttpTransport {
  const urls = typeof options.url === 'string' ? [options.url] : options.url
  const servers = urls.map(url => createHttpTransport({ ...options, url }))
  const [only] = servers
  return only && servers.length === 1 ? only : createFailover(servers, options.random)
}
