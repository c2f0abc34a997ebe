import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Body, headersOf, type NotifyRequest, type NotifyStatus } from './answer.ts'

/** Where frameworks leave the bytes that they have read already: `express.raw()`, and Google's functions. */
type ReadAlready = { body?: unknown; rawBody?: unknown }

/** Makes a request of a server's. */
export function fromIncoming(incoming: IncomingMessage): NotifyRequest {
  return {
    method: incoming.method,
    header(name) {
      const value = incoming.headers[name]
      return typeof value === 'string' ? value : undefined
    },
    async readBody(maxBytes) {
      const { rawBody, body } = incoming as ReadAlready
      const bytes = [rawBody, body].find(found => found instanceof Uint8Array)
      if (bytes) return bytes.length > maxBytes ? 'too_large' : bytes
      if (incoming.readableEnded || incoming.readableDidRead)
        throw new Error('The body was read before it came to the notify receiver, which needs its bytes.')
      return Number(incoming.headers['content-length']) > maxBytes ? 'too_large' : readStream(incoming, maxBytes)
    },
  }
}

/** Answers a request of a server's. */
export function respond(incoming: IncomingMessage, response: ServerResponse, status: NotifyStatus): void {
  if (response.headersSent) return
  // What is left of a body that is too large is not waited for. HTTP/2 knows no such header, and needs none.
  if (status === 413 && incoming.httpVersionMajor === 1) response.setHeader('connection', 'close')
  response.writeHead(status, { ...headersOf(status), 'content-length': 0 })
  response.end()
}

/** Not `for await`: to leave that early destroys the connection, and with it the answer. */
function readStream(incoming: IncomingMessage, maxBytes: number): Promise<Body> {
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let length = 0
    incoming.on('data', (chunk: Buffer) => {
      length += chunk.length
      // The rest is thrown away until the answer has ended the connection, so that the sender gets to read it.
      if (length > maxBytes) resolve('too_large')
      else chunks.push(chunk)
    })
    incoming.once('end', () => resolve(Buffer.concat(chunks)))
    incoming.once('error', () => resolve('cut_off'))
    incoming.once('close', () => resolve('cut_off'))
  })
}
