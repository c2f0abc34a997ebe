import http from 'node:http'
import https from 'node:https'
import type { Clock } from '../../core/protocol/clock.ts'
import { PmqClientError } from './errors.ts'
import { readHttpAnswer } from './http-answer.ts'
import { sdkVersion } from './identity.ts'
import { invalidOption } from './options.ts'

/** How a single request is to be made. */
export type CallOptions = {
  /** The longest wait for the whole answer, in milliseconds. */
  timeoutMs: number
  /** Gives the request up when it aborts. */
  signal?: AbortSignal | undefined
}

/**
 * Carries one request to the service and brings its answer: the one thing that producers and consumers need of a
 * network. Rejects with a `PmqClientError`, in time: never later than `timeoutMs`, at once when `signal` aborts.
 */
export type Transport = (path: string, request: object, options: CallOptions) => Promise<unknown>

/** A transport over HTTP, which holds connections. */
export type HttpTransport = {
  call: Transport
  /** Ends the connections that no request uses. What was agreed for TLS is kept: the next ones cost less than the first. */
  endIdle(): void
  /** Ends all connections; requests under way and later ones are rejected with code `closed`. */
  close(): void
}

/** What an HTTP transport is made of; a client passes its own options. */
export type HttpTransportOptions = {
  url: string
  headers: Readonly<Record<string, string>>
  maxAnswerBytes: number
  clock: Clock
}

/**
 * POSTs JSON over kept connections of `node:http`. Not `fetch`: the same call costs it three to four times the CPU.
 * There is no limit on connections, since a pull that waits for messages holds one and must not keep a commit waiting;
 * callers bound what they have under way.
 */
export function createHttpTransport(options: HttpTransportOptions): HttpTransport {
  const { secure, hostname, port, basePath, shownHost } = parseBaseUrl(options.url)
  const agent = new (secure ? https : http).Agent({ keepAlive: true })
  const startRequest = secure ? https.request : http.request
  const target = { hostname, port, agent, method: 'POST' }
  const headers = {
    'user-agent': `pmq-sdk/${sdkVersion}`,
    ...checkHeaders(options.headers),
    'content-type': 'application/json',
  }
  let isClosed = false

  function call(path: string, request: object, { timeoutMs, signal }: CallOptions): Promise<unknown> {
    return new Promise((resolve, reject) => {
      // The base path may hold a key, so errors name the host and the endpoint alone.
      const place = `${shownHost}${path}`
      if (isClosed) throw new PmqClientError('closed', `The client is closed; ${place} was not called.`)
      if (signal?.aborted)
        throw new PmqClientError('aborted', `The request to ${place} was given up before it was sent.`)

      const text = JSON.stringify(request)
      const outgoing = startRequest({
        ...target,
        path: basePath + path,
        headers: { ...headers, 'content-length': Buffer.byteLength(text) },
      })
      let isSettled = false
      const timer = setTimeout(() => {
        fail(new PmqClientError('timeout', `${place} did not answer within ${timeoutMs} ms.`))
      }, timeoutMs)
      const onAbort = () => fail(new PmqClientError('aborted', `The request to ${place} was given up.`))
      signal?.addEventListener('abort', onAbort, { once: true })

      function settle(): boolean {
        if (isSettled) return false
        isSettled = true
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        return true
      }
      function fail(error: PmqClientError) {
        if (!settle()) return
        // Whatever is still to come on this socket would be taken for the answer to the next request.
        outgoing.destroy()
        reject(error)
      }
      const lose = (error: Error) => fail(connectionError(error, place, isClosed, outgoing.socket))

      outgoing.on('error', lose)
      outgoing.on('close', () => {
        // Also the end of every good request; an error with its stack would cost a tenth of it.
        if (!isSettled) lose(new Error('the connection was closed'))
      })
      outgoing.on('response', incoming => {
        const chunks: Buffer[] = []
        let bytes = 0
        incoming.on('error', lose)
        incoming.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes <= options.maxAnswerBytes) chunks.push(chunk)
          else
            fail(new PmqClientError('bad_answer', `${place} answered with more than ${options.maxAnswerBytes} bytes.`))
        })
        incoming.on('end', () => {
          if (!incoming.complete) return lose(new Error('the answer was cut off'))
          try {
            const answer = readHttpAnswer(incoming, chunks, place, options.clock.now())
            if (settle()) resolve(answer)
          } catch (error) {
            if (settle()) reject(error)
          }
        })
      })
      outgoing.end(text)
    })
  }

  return {
    call,
    endIdle() {
      for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
    },
    close() {
      isClosed = true
      agent.destroy()
    },
  }
}

/** Names in lower case, so that none of them comes twice. The values may be secrets and are not shown. */
function checkHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const checked: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    try {
      http.validateHeaderName(name)
      http.validateHeaderValue(name, value)
    } catch {
      throw invalidOption(`headers: "${name}" is not a header that can be sent`)
    }
    checked[name.toLowerCase()] = value
  }
  return checked
}

function parseBaseUrl(text: string) {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    // Without a cause: it carries the text, and with it a key that stands in its path.
    throw invalidOption('url is not a URL; such as https://example.com/base would be')
  }
  const secure = url.protocol === 'https:'
  if (!secure && url.protocol !== 'http:')
    throw invalidOption(`url begins with ${url.protocol}; it must begin with http: or https:`)
  if (url.username || url.password) throw invalidOption('url carries a user name or password; send them in headers')
  if (url.search || url.hash) throw invalidOption('url has a query or fragment; it must end with its path')
  return {
    secure,
    // `node:http` takes IPv6 addresses without the brackets of a URL.
    hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port || (secure ? 443 : 80),
    basePath: url.pathname.replace(/\/+$/, ''),
    shownHost: url.host,
  }
}

function connectionError(
  cause: Error,
  place: string,
  isClosed: boolean,
  socket: { destroyed: boolean; secureConnecting?: boolean } | null,
): PmqClientError {
  // The bytes that a parser could not read may be a message's.
  Reflect.deleteProperty(cause, 'rawPacket')
  if (isClosed) return new PmqClientError('closed', `The client was closed while ${place} was called.`, { cause })
  const { syscall } = cause as NodeJS.ErrnoException
  // Nothing is sent before TLS stands; what can go wrong on the way there has dozens of codes.
  const neverConnected = syscall === 'connect' || syscall === 'getaddrinfo' || socket?.secureConnecting === true
  return neverConnected
    ? new PmqClientError('unreachable', `${place} cannot be reached: ${cause.message}`, { cause })
    : new PmqClientError('connection_lost', `${place} gave no answer: ${cause.message}`, { cause })
}
