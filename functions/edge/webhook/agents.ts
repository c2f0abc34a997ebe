import http from 'node:http'
import https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Duplex } from 'node:stream'
import { RequestFilteringHttpAgent, RequestFilteringHttpsAgent } from 'request-filtering-agent'
import type { Resolve } from './resolve.ts'

/** How a request gets to its target. */
export type Route = {
  agent: http.Agent
  start: typeof http.request
  isSecure: boolean
  /** Why nothing may be said at an address; undefined: it may. */
  refuse(address: string): string | undefined
}

export type Routes = {
  http: Route
  https: Route
  /** Ends connections that have been idle for long by the wall clock: a process that was frozen has missed their ends. */
  endStale(nowMs: number): void
  /** Ends all idle ones. */
  endIdle(): void
  close(): void
}

/**
 * Less than the five seconds after which many servers end an idle connection: a request that meets the end of its connection
 * may or may not have been read.
 */
const maxIdleMs = 4_000
/** Idle connections, of one origin and of all. Those in use are as many as there are requests: who sends bounds them. */
const maxIdlePerOrigin = 4
const maxIdle = 64
/** How many addresses of a name are tried. */
const maxAddresses = 8

/**
 * Makes connections that go nowhere but to addresses that are not refused. That is asked of each address that a name resolves
 * to, in the look-up that the connection itself uses; of an address in place of a name; and by `exchange` of what the
 * connection says that it is connected to.
 *
 * `request-filtering-agent` is the second wall, for public targets. Alone it would let pass what no list of its knows, such as
 * `::127.0.0.1` and all of IPv6 that is not given out; here only what is known to be public is.
 */
export function createRoutes(
  refuse: Route['refuse'],
  resolve: Resolve,
  { isPublic, now }: { isPublic: boolean; now: () => number },
): Routes {
  const options = {
    keepAlive: true,
    timeout: maxIdleMs,
    maxFreeSockets: maxIdlePerOrigin,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: 1_000,
    // Also where the environment says otherwise of every connection.
    rejectUnauthorized: true,
    lookup: createLookup(resolve, refuse),
    allowPrivateIPAddress: !isPublic,
  }
  const agents = { http: new RequestFilteringHttpAgent(options), https: new RequestFilteringHttpsAgent(options) }
  const idleSinceMs = new WeakMap<Duplex, number>()
  for (const agent of Object.values(agents)) {
    const keep = agent.keepSocketAlive.bind(agent) as (socket: Duplex) => boolean
    agent.keepSocketAlive = (socket: Duplex) => {
      idleSinceMs.set(socket, now())
      return idle().length < maxIdle && keep(socket)
    }
  }

  const idle = () =>
    Object.values(agents).flatMap(agent => Object.values(agent.freeSockets).flatMap(list => list ?? []))

  return {
    http: { agent: agents.http, start: http.request, isSecure: false, refuse },
    https: { agent: agents.https, start: https.request, isSecure: true, refuse },
    endStale(nowMs) {
      for (const socket of idle()) {
        const idleMs = nowMs - (idleSinceMs.get(socket) ?? 0)
        if (idleMs < 0 || idleMs >= maxIdleMs) socket.destroy()
      }
    },
    endIdle() {
      for (const socket of idle()) socket.destroy()
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

/** A name of which one address is refused is refused: it is not chance which of them a connection gets. */
function createLookup(resolve: Resolve, refuse: Route['refuse']): LookupFunction {
  return (hostname, options, callback) => {
    const fail = (error: Error) => callback(error, '', 0)
    resolve(hostname).then(addresses => {
      const refusal = addresses.map(refuse).find(found => found !== undefined)
      if (refusal !== undefined) return fail(new Error(`${hostname} has ${refusal}`))
      const [first] = addresses
      if (first === undefined) return fail(new Error(`${hostname} has no address`))
      if (!options.all) return callback(null, first, isIP(first))
      callback(
        null,
        addresses.slice(0, maxAddresses).map(address => ({ address, family: isIP(address) })),
      )
    }, fail)
  }
}
