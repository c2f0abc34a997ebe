import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { bare, portOf } from '../../../core/notify/target-url.ts'
import { readRetryAfter } from '../../../core/protocol/retry-after.ts'
import type { Route } from './agents.ts'
import type { WebhookAnswer } from './sender.ts'

/** One request and its answer, over a connection of this route. */
export type Exchange = {
  route: Route
  url: URL
  headers: Record<string, string>
  body: Buffer
  timeoutMs: number
  maxAnswerBytes: number
  signal: AbortSignal | undefined
  now: () => number
}

/** `isStale`: a connection that was kept has ended before a byte of an answer, as one does that was idle for too long. */
export type Exchanged = WebhookAnswer & { isStale?: true }

const maxHeaderBytes = 16 * 1024

/** Makes one exchange. Never rejects, and is over when `timeoutMs` are, whatever the other end does. */
export function exchange({ route, url, headers, body, timeoutMs, maxAnswerBytes, signal, now }: Exchange) {
  return new Promise<Exchanged>(resolve => {
    const outgoing = route.start({
      agent: route.agent,
      method: 'POST',
      hostname: bare(url.hostname),
      port: portOf(url),
      path: url.pathname + url.search,
      headers: { host: url.host, ...headers, 'content-length': body.length },
      maxHeaderSize: maxHeaderBytes,
      insecureHTTPParser: false,
    })
    /** Nothing is sent before a connection stands, with TLS and all; from then on the receiver may have begun. */
    let isConnected = false
    let bytesBefore = 0
    let isSettled = false

    const timer = setTimeout(() => lose(new Error(`it took more than ${timeoutMs} ms`)), timeoutMs)
    const onAbort = () => lose(new Error('it was given up'))
    signal?.addEventListener('abort', onAbort, { once: true })

    function settle(exchanged: Exchanged) {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      // Whatever is still to come on this connection would be taken for the answer to the next request.
      if (exchanged.outcome !== 'answered' || exchanged.isCut || !outgoing.writableFinished) outgoing.destroy()
      resolve(exchanged)
    }
    function lose(cause: Error) {
      const error = describe(cause)
      settle(isConnected ? { outcome: 'no_answer', error } : { outcome: 'not_sent', error })
    }
    function breakOff(cause: Error) {
      const hasAnswered = (outgoing.socket?.bytesRead ?? 0) > bytesBefore
      if (isConnected && outgoing.reusedSocket && !hasAnswered)
        settle({ outcome: 'no_answer', error: describe(cause), isStale: true })
      else lose(cause)
    }

    outgoing.on('socket', (socket: Socket) => {
      const look = () => {
        const refusal = route.refuse(socket.remoteAddress ?? '')
        if (refusal !== undefined) return lose(new Error(`${url.hostname} leads to ${refusal}`))
        if (!route.isSecure || outgoing.reusedSocket) isConnected = true
      }
      bytesBefore = socket.bytesRead
      if (outgoing.reusedSocket) return look()
      socket.once('connect', look)
      if (route.isSecure) socket.once('secureConnect', () => (isConnected = true))
    })
    outgoing.on('error', breakOff)
    outgoing.on('close', () => {
      // The end of every exchange; an error with its stack only where it was not expected.
      if (!isSettled) breakOff(new Error('the connection was closed'))
    })
    outgoing.on('response', (incoming: IncomingMessage) => {
      const chunks: Buffer[] = []
      let room = maxAnswerBytes
      const answered = (isCut: boolean) => {
        const retryAfterMs = readRetryAfter(incoming.headers['retry-after'], now())
        settle({
          outcome: 'answered',
          status: incoming.statusCode ?? 0,
          body: textOf(chunks, isCut),
          isCut,
          ...(retryAfterMs !== undefined && { retryAfterMs }),
        })
      }
      incoming.on('error', lose)
      incoming.on('data', (chunk: Buffer) => {
        if (chunk.length <= room) {
          chunks.push(chunk)
          room -= chunk.length
          return
        }
        chunks.push(chunk.subarray(0, room))
        room = 0
        answered(true)
      })
      incoming.on('end', () => {
        if (incoming.complete) answered(false)
        else lose(new Error('the answer was cut off'))
      })
      incoming.on('close', () => {
        if (!isSettled) lose(new Error('the answer was cut off'))
      })
    })
    outgoing.end(body)
  })
}

/** What is no text has replacement characters; a character that was cut is left out. */
const textOf = (chunks: Buffer[], isCut: boolean) =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(chunks), { stream: isCut })

const maxErrorLength = 300

/** What a target's log says. A certificate's names are what its owner wants, so nothing is taken as it is. */
function describe(error: Error): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const text = first instanceof Error ? first.message : String(first)
  return text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, maxErrorLength)
}
