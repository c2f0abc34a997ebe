import { headersOf, type NotifyRequest, type NotifyStatus } from './answer.ts'

/** What API Gateway and function URLs make an HTTP answer of. */
export type NotifyLambdaAnswer = { statusCode: number; headers: Record<string, string>; body: string }

/** Makes a request of an event: payload 2.0 of API Gateway, as function URLs send it too, and 1.0. */
export function fromEvent(event: unknown): NotifyRequest {
  const { requestContext, httpMethod, headers, multiValueHeaders, body, isBase64Encoded } = recordOf(event)
  const method = httpMethod ?? recordOf(recordOf(requestContext).http).method
  return {
    method: typeof method === 'string' ? method : undefined,
    header: name => headerOf(headers, name) ?? headerOf(multiValueHeaders, name),
    async readBody(maxBytes) {
      if (typeof body !== 'string') return new Uint8Array()
      // Before it is decoded: four characters of base64 are three bytes, and a character of text one at least.
      const length = isBase64Encoded === true ? Math.floor(body.length / 4) * 3 - 2 : body.length
      if (length > maxBytes) return 'too_large'
      const bytes = Buffer.from(body, isBase64Encoded === true ? 'base64' : 'utf8')
      return bytes.length > maxBytes ? 'too_large' : bytes
    },
  }
}

/** The answer as a Lambda gives it. */
export function toAnswer(status: NotifyStatus): NotifyLambdaAnswer {
  return { statusCode: status, headers: headersOf(status), body: '' }
}

/** Payload 1.0 has names as they were sent, and lists of values. */
function headerOf(headers: unknown, name: string): string | undefined {
  for (const [given, value] of Object.entries(recordOf(headers))) {
    const only = Array.isArray(value) && value.length === 1 ? value[0] : value
    if (typeof only === 'string' && given.toLowerCase() === name) return only
  }
  return undefined
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
