import { randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda'
import { type Match, type Matched, toEvent } from './gateway.ts'

/** API Gateway takes no larger request than 10 MB, and a Lambda no larger event than 6 MB; the edge's own bound is lower. */
const maxRequestBytes = 6 * 1024 * 1024
/** Longer than any client's keep-alive, so that it is the client that closes an idle connection. */
const keepAliveMs = 75_000

/** What stands behind the server: routes, and what a request to one of them is given to. */
export type Backend<Target> = {
  match: Match<Target>
  invoke(
    matched: Matched<Target>,
    event: APIGatewayProxyEventV2,
    requestId: string,
  ): Promise<APIGatewayProxyStructuredResultV2>
  /** A larger request is refused with 413. @default 6 MB */
  maxRequestBytes?: number
}

/** An HTTP API on this machine: the events that it makes are those that API Gateway would make. */
export function createHttpServer<Target>(backend: Backend<Target>): Server {
  const server = createServer((request, response) => {
    serve(backend, request, response).catch(error => {
      // Only a connection that broke gets here: what a handler throws is answered by the edge.
      if (!response.headersSent) response.destroy(error)
    })
  })
  server.keepAliveTimeout = keepAliveMs
  return server
}

async function serve<Target>(
  backend: Backend<Target>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [rawPath = '/', query = ''] = (request.url ?? '/').split('?', 2)
  const path = decodePath(rawPath)
  const matched = path === undefined ? undefined : backend.match(request.method ?? 'GET', path)
  if (path === undefined || !matched) return answer(response, 404, '{"message":"Not Found"}')
  if (!isAddressedHere(request.headers)) return answer(response, 403, '{"message":"Forbidden"}')
  const body = await readBody(request, backend.maxRequestBytes ?? maxRequestBytes)
  if (body === undefined) {
    response.setHeader('connection', 'close')
    return answer(response, 413, '{"message":"Request Entity Too Large"}')
  }
  const requestId = randomUUID()
  const event = toEvent(request, matched, path, query, body, requestId)
  const result = await backend.invoke(matched, event, requestId)
  for (const [name, value] of Object.entries(result.headers ?? {})) response.setHeader(name, String(value))
  const bytes = Buffer.from(result.body ?? '', result.isBase64Encoded ? 'base64' : 'utf8')
  answer(response, result.statusCode ?? 200, bytes)
}

const hereOnly = /^(https?:\/\/)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i

/**
 * The host asks for no key, and is for this machine alone: a page of another site that is open in a browser here must not
 * use it, neither directly (`Origin`) nor by a name that it lets point here (`Host`).
 */
function isAddressedHere({ host = '', origin }: IncomingHttpHeaders): boolean {
  return hereOnly.test(host) && (origin === undefined || hereOnly.test(origin))
}

function answer(response: ServerResponse, status: number, body: string | Buffer): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  if (!response.hasHeader('content-type')) response.setHeader('content-type', 'application/json; charset=utf-8')
  response.writeHead(status, { 'content-length': bytes.length })
  response.end(bytes)
}

function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}

/**
 * The body; undefined if it is larger than allowed. Not `for await`: to leave that early destroys the
 * connection, and with it the answer. What is left is thrown away until the sender has read that.
 */
function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > maxBytes) resolve(undefined)
      else chunks.push(chunk)
    })
    request.once('end', () => {
      const [only] = chunks
      resolve(chunks.length === 1 && only ? only : Buffer.concat(chunks))
    })
    request.once('error', reject)
    request.once('close', () => reject(new Error('the connection was closed before the whole request was there')))
  })
}
