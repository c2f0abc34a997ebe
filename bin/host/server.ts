import { randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { FunctionName } from '../../core/protocol/endpoints.ts'
import type { HttpHandler } from '../../functions/edge/http.ts'
import { matchRoute, toContext, toEvent } from './gateway.ts'

/** API Gateway takes no larger request than 10 MB, and a Lambda no larger event than 6 MB; the edge's own bound is lower. */
const maxRequestBytes = 6 * 1024 * 1024
/** Longer than any client's keep-alive, so that it is the client that closes an idle connection. */
const keepAliveMs = 75_000

/** The functions behind node:http: the events that they get are those that API Gateway would make. */
export function createHttpServer(handlers: Record<FunctionName, HttpHandler>): Server {
  const server = createServer((request, response) => {
    serve(handlers, request, response).catch(error => {
      // Only a connection that broke gets here: what a handler throws is answered by the edge.
      if (!response.headersSent) response.destroy(error)
    })
  })
  server.keepAliveTimeout = keepAliveMs
  return server
}

async function serve(
  handlers: Record<FunctionName, HttpHandler>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [rawPath = '/', query = ''] = (request.url ?? '/').split('?', 2)
  const path = decodePath(rawPath)
  const matched = path === undefined ? undefined : matchRoute(request.method ?? 'GET', path)
  if (path === undefined || !matched) return answer(response, 404, '{"message":"Not Found"}')
  if (!isAddressedHere(request.headers)) return answer(response, 403, '{"message":"Forbidden"}')
  const body = await readBody(request)
  if (body === undefined) {
    response.setHeader('connection', 'close')
    return answer(response, 413, '{"message":"Request Entity Too Large"}')
  }
  const requestId = randomUUID()
  const event = toEvent(request, matched, path, query, body, requestId)
  const result = await handlers[matched.functionName](event, toContext(requestId))
  for (const [name, value] of Object.entries(result.headers ?? {})) response.setHeader(name, String(value))
  answer(response, result.statusCode ?? 200, result.body ?? '')
}

const hereOnly = /^(https?:\/\/)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i

/**
 * The host asks for no key, and is for this machine alone: a page of another site that is open in a browser here must not
 * use it, neither directly (`Origin`) nor by a name that it lets point here (`Host`).
 */
function isAddressedHere({ host = '', origin }: IncomingHttpHeaders): boolean {
  return hereOnly.test(host) && (origin === undefined || hereOnly.test(origin))
}

function answer(response: ServerResponse, status: number, body: string): void {
  const bytes = Buffer.from(body)
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
 * The body; undefined if it is larger than a Lambda would be given. Not `for await`: to leave that early destroys the
 * connection, and with it the answer. What is left is thrown away until the sender has read that.
 */
function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > maxRequestBytes) resolve(undefined)
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
