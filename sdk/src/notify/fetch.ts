import { type Body, headersOf, type NotifyRequest, type NotifyStatus } from './answer.ts'

/** Makes a request of one of the web's. */
export function fromRequest(request: Request): NotifyRequest {
  return {
    method: request.method,
    header: name => request.headers.get(name) ?? undefined,
    async readBody(maxBytes) {
      if (request.bodyUsed)
        throw new Error('The body was read before it came to the notify receiver, which needs its bytes.')
      if (Number(request.headers.get('content-length')) > maxBytes) return 'too_large'
      return request.body ? readStream(request.body.getReader(), maxBytes) : new Uint8Array()
    },
  }
}

/** The answer as one of the web's. */
export function toResponse(status: NotifyStatus): Response {
  return new Response(null, { status, headers: headersOf(status) })
}

async function readStream(reader: ReadableStreamDefaultReader<Uint8Array>, maxBytes: number): Promise<Body> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return Buffer.concat(chunks)
      length += value.length
      if (length > maxBytes) break
      chunks.push(value)
    }
  } catch {
    return 'cut_off'
  }
  // What the sender does with that is nothing to wait for.
  void reader.cancel().catch(() => undefined)
  return 'too_large'
}
