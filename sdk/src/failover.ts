import { PmqClientError } from './errors.ts'
import type { HttpTransport } from './transport.ts'

/** What a gateway answers for a server that is gone or does not answer. */
const gatewayStatuses = new Set([502, 503, 504])

/**
 * Carries all requests to one of several servers of one and the same service: any at first, so that many clients spread.
 * One that fails rests until each of the others has failed after it: the longer ago a failure, the sooner its turn. No
 * length of time would do better, since a server that works is never left for one that may.
 *
 * A request goes out once, also where it failed before it was sent: whoever made it repeats it, since only he knows what
 * has to be said of the attempt before. So nothing is stored twice, and nothing overtakes.
 */
export function createFailover(servers: readonly HttpTransport[], random: () => number): HttpTransport {
  let current = Math.floor(random() * servers.length)
  return {
    async call(path, request, options) {
      const chosen = current
      try {
        return await (servers[chosen] as HttpTransport).call(path, request, options)
      } catch (thrown) {
        // Of many requests that fail together only the first moves all later ones.
        if (chosen === current && hasServerFailed(thrown)) current = (current + 1) % servers.length
        throw thrown
      }
    },
    endIdle() {
      for (const server of servers) server.endIdle()
    },
    close() {
      for (const server of servers) server.close()
    },
  }
}

/** Any answer of the service itself, also one that says no, shows that its server works. */
function hasServerFailed(thrown: unknown): boolean {
  if (!(thrown instanceof PmqClientError)) return false
  const { code, status } = thrown
  if (status !== undefined) return gatewayStatuses.has(status)
  return code === 'unreachable' || code === 'connection_lost' || code === 'timeout'
}
