import { codeOf } from '../../core/code-of.ts'
import type { Core } from '../../core/core.ts'
import { type Endpoint, type EndpointName, endpoints } from '../../core/protocol/endpoints.ts'
import { errorTable, PmqError } from '../../core/protocol/errors.ts'
import { type CallOptions, PmqClientError, type Transport } from '../../sdk/src/index.ts'
import { consumeOptions, consumeRoutes } from './consume-routes.ts'
import type { Routes } from './http.ts'
import { logError } from './log.ts'
import { publishRoutes } from './publish-routes.ts'
import { validate } from './validate.ts'

/**
 * Carries requests of the SDK to the use cases of this process, as they would be on the wire: what a request leaves out is
 * left out, and an answer is nobody else's. One that was given up goes on, as one does that a server has.
 */
export function createInProcessTransport(core: Core): Transport {
  const routes: Routes = { ...consumeRoutes, ...publishRoutes }
  const byPath = new Map(
    Object.entries(routes).map(([name, route]) => {
      const endpoint: Endpoint = endpoints[name as EndpointName]
      return [endpoint.path, { endpoint, route }]
    }),
  )

  async function serve(path: string, request: object): Promise<unknown> {
    try {
      const served = byPath.get(path)
      if (!served) throw new PmqError('not_found', `there is no ${path}`)
      const { endpoint, route } = served
      const json: unknown = JSON.parse(JSON.stringify(request))
      const parsed = endpoint.request ? validate(endpoint.request, json) : undefined
      const answer = await route(core, parsed, {}, '')
      return typeof answer === 'string' ? answer : JSON.parse(serialize(answer))
    } catch (error) {
      throw asAnswer(path, error)
    }
  }

  return (path, request, options) => within(core, path, serve(path, request), options)
}

const { serialize = JSON.stringify } = consumeOptions

/** What the SDK makes of the answer that a caller elsewhere would have had. */
function asAnswer(path: string, error: unknown): PmqClientError {
  const code = codeOf(error)
  if (code === 'internal' || code === 'unavailable') logError('a request failed', { route: path, code }, error)
  const message = error instanceof PmqError ? error.message : errorTable[code].meaning
  return new PmqClientError(code, message, { status: errorTable[code].status })
}

async function within(
  { clock }: Core,
  path: string,
  answer: Promise<unknown>,
  { timeoutMs, signal }: CallOptions,
): Promise<unknown> {
  const waiting = new AbortController()
  const stopWaiting = () => waiting.abort()
  signal?.addEventListener('abort', stopWaiting, { once: true })
  if (signal?.aborted) stopWaiting()
  const timeUp = clock.sleep(timeoutMs, waiting.signal).then(() => {
    if (signal?.aborted) throw new PmqClientError('aborted', `The request to ${path} was given up.`)
    throw new PmqClientError('timeout', `${path} did not answer within ${timeoutMs} ms.`)
  })
  try {
    return await Promise.race([answer, timeUp])
  } finally {
    signal?.removeEventListener('abort', stopWaiting)
    // Whatever is left of the two is for nobody.
    for (const late of [answer, timeUp]) late.catch(() => undefined)
    stopWaiting()
  }
}
