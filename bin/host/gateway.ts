import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { APIGatewayProxyEventV2, Context } from 'aws-lambda'
import { type Endpoint, endpoints, type FunctionName } from '../../core/protocol/endpoints.ts'
import { localAccount } from '../../functions/edge/caller.ts'

/** One route of an HTTP API: a method, a path in API Gateway's notation (`{name}` is one segment), and what it leads to. */
export type Route<Target> = { method: string; path: string; target: Target }

/** What API Gateway does in front of the functions: finds the route, makes the event. */
export type Matched<Target> = { target: Target; routeKey: string; parameters: Record<string, string> }
export type Match<Target> = (method: string, path: string) => Matched<Target> | undefined

/** Finds the route of a request: one without parameters before one with. */
export function createMatch<Target>(routes: Route<Target>[]): Match<Target> {
  const table = routes.map(({ method, path, target }) => ({
    method,
    target,
    routeKey: `${method} ${path}`,
    segments: path.split('/'),
  }))
  const literal = new Map(
    table
      .filter(({ routeKey }) => !routeKey.includes('{'))
      .map(({ routeKey, target }) => [routeKey, { target, routeKey, parameters: {} }]),
  )

  function matchPattern(method: string, path: string): Matched<Target> | undefined {
    const segments = path.split('/')
    for (const route of table) {
      if (route.method !== method || route.segments.length !== segments.length) continue
      const parameters: Record<string, string> = {}
      const matches = route.segments.every((expected, i) => {
        const actual = segments[i] ?? ''
        if (!expected.startsWith('{')) return expected === actual
        parameters[expected.slice(1, -1)] = actual
        return actual !== ''
      })
      if (matches) return { target: route.target, routeKey: route.routeKey, parameters }
    }
    return undefined
  }

  return (method, path) => literal.get(`${method} ${path}`) ?? matchPattern(method, path)
}

/** The routes of the protocol, each to its function. */
export const matchRoute: Match<FunctionName> = createMatch(
  Object.values(endpoints as Record<string, Endpoint>).map(({ method, path, function: target }) => ({
    method,
    path,
    target,
  })),
)

/** A request as API Gateway's HTTP API hands it to a function (payload format 2.0): headers joined, the path decoded. */
export function toEvent(
  request: IncomingMessage,
  matched: Pick<Matched<unknown>, 'routeKey' | 'parameters'>,
  path: string,
  query: string,
  body: Buffer,
  requestId: string,
): APIGatewayProxyEventV2 {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(',') : value
  }
  const method = request.method ?? 'GET'
  // What is no text travels as base64, as with API Gateway; decoded here, its bytes would be lost.
  const isText = isUtf8(body)
  return {
    version: '2.0',
    routeKey: matched.routeKey,
    rawPath: path,
    rawQueryString: query,
    headers,
    pathParameters: matched.parameters,
    requestContext: {
      accountId: localAccount,
      apiId: 'local',
      domainName: headers.host ?? 'localhost',
      domainPrefix: 'local',
      http: {
        method,
        path,
        protocol: `HTTP/${request.httpVersion}`,
        sourceIp: request.socket.remoteAddress ?? '',
        userAgent: headers['user-agent'] ?? '',
      },
      requestId,
      routeKey: matched.routeKey,
      stage: '$default',
      time: '',
      timeEpoch: 0,
    },
    ...(body.length > 0 && { body: isText ? body.toString() : body.toString('base64') }),
    isBase64Encoded: !isText,
  }
}

/** What our handlers use of a Lambda context. */
export const toContext = (requestId: string) => ({ awsRequestId: requestId }) as Context
