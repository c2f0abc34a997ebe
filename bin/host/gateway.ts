import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { APIGatewayProxyEventV2, Context } from 'aws-lambda'
import { type Endpoint, endpoints, type FunctionName } from '../../core/protocol/endpoints.ts'
import { localAccount } from '../../functions/edge/caller.ts'

/** What API Gateway does in front of the functions: finds the route, makes the event. */
export type Matched = { functionName: FunctionName; routeKey: string; parameters: Record<string, string> }

const table = Object.values(endpoints as Record<string, Endpoint>).map(endpoint => ({
  method: endpoint.method,
  functionName: endpoint.function,
  routeKey: `${endpoint.method} ${endpoint.path}`,
  segments: endpoint.path.split('/'),
}))
const literal = new Map(
  table
    .filter(route => !route.routeKey.includes('{'))
    .map(({ functionName, routeKey }) => [routeKey, { functionName, routeKey, parameters: {} }]),
)

export function matchRoute(method: string, path: string): Matched | undefined {
  return literal.get(`${method} ${path}`) ?? matchPattern(method, path)
}

function matchPattern(method: string, path: string): Matched | undefined {
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
    if (matches) return { functionName: route.functionName, routeKey: route.routeKey, parameters }
  }
  return undefined
}

/** A request as API Gateway's HTTP API hands it to a function (payload format 2.0): headers joined, the path decoded. */
export function toEvent(
  request: IncomingMessage,
  matched: Matched,
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
