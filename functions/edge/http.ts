import middy from '@middy/core'
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from 'aws-lambda'
import type { Core } from '../../core/core.ts'
import { type Endpoint, type EndpointName, endpoints } from '../../core/protocol/endpoints.ts'
import { PmqError } from '../../core/protocol/errors.ts'
import { answerErrors } from './answer-errors.ts'
import { parseBody } from './parse-body.ts'
import { parseQuery } from './parse-query.ts'

/** Serves one endpoint: the parsed request and the path's parameters in, the answer out. */
export type Route<Request> = (
  core: Core,
  request: Request,
  parameters: Record<string, string>,
  callerIp: string,
) => Promise<object | string>
// biome-ignore lint/suspicious/noExplicitAny: each route takes what its endpoint's schema gives.
export type Routes = Partial<Record<EndpointName, Route<any>>>

export type HttpHandler = (
  event: APIGatewayProxyEventV2,
  context: Context,
) => Promise<APIGatewayProxyStructuredResultV2>

export type HttpOptions = {
  /** Turns an answer into JSON; by default `JSON.stringify`. */
  serialize?: (answer: object) => string
}

/** The name that PMQ's clients log as the server's. */
const serverIp = 'pmq'

/** A Lambda handler for API Gateway's HTTP API (payload format 2.0) that serves these routes. */
export function httpHandler(core: Core, routes: Routes, { serialize = JSON.stringify }: HttpOptions = {}): HttpHandler {
  const byRouteKey = new Map(
    Object.entries(routes).map(([name, route]) => {
      const endpoint: Endpoint = endpoints[name as EndpointName]
      return [`${endpoint.method} ${endpoint.path}`, { endpoint, route }]
    }),
  )
  return middy()
    .use(answerErrors)
    .handler(async (event: APIGatewayProxyEventV2) => {
      const startedAt = core.clock.monotonic()
      const served = byRouteKey.get(event.routeKey)
      if (!served?.route) throw new PmqError('not_found', `there is no ${event.routeKey}`)
      const { endpoint, route } = served
      const parsed = endpoint.method === 'GET' ? parseQuery(endpoint, event) : parseBody(endpoint, event)
      const parameters = (event.pathParameters ?? {}) as Record<string, string>
      const answer =
        'refusal' in parsed
          ? parsed.refusal
          : await route(core, parsed.request, parameters, event.requestContext.http.sourceIp)
      if (typeof answer === 'string') return plainText(answer)
      if (endpoint.function === 'admin') return json(endpoint.status ?? 200, serialize(answer))
      const time = Math.round((core.clock.monotonic() - startedAt) * 1e6)
      return json(200, serialize({ ...answer, time, serverIp }))
    })
}

const plainText = (body: string): APIGatewayProxyStructuredResultV2 => ({
  statusCode: 200,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body,
})

export const json = (statusCode: number, body: string): APIGatewayProxyStructuredResultV2 => ({
  statusCode,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body,
})
