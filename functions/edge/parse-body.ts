import { isUtf8 } from 'node:buffer'
import type { APIGatewayProxyEventV2 } from 'aws-lambda'
import type { Endpoint } from '../../core/protocol/endpoints.ts'
import { PmqError } from '../../core/protocol/errors.ts'
import { limits } from '../../core/protocol/limits.ts'
import { validate } from './validate.ts'

/** The request as its endpoint's schema types it; or PMQ's answer to a client that sent nothing. */
export type ParsedBody = { request: unknown } | { refusal: object }

export function parseBody(endpoint: Endpoint, event: APIGatewayProxyEventV2): ParsedBody {
  if (!endpoint.request) return { request: undefined }
  const json = parseJson(readText(event))
  if (json === null && endpoint.refusalOfNothing) {
    return {
      refusal: { suc: false, msg: endpoint.refusalOfNothing, ...(endpoint.function === 'publish' && { sleepTime: 0 }) },
    }
  }
  // The schemas of objects take arrays too, in which they find no field.
  if (Array.isArray(json)) throw new PmqError('bad_request', 'the body: expected Object')
  return { request: validate(endpoint.request, json ?? {}) }
}

function readText(event: APIGatewayProxyEventV2): string {
  const body = event.body ?? ''
  if (!event.isBase64Encoded) return checkSize(body, Buffer.byteLength(body))
  const bytes = Buffer.from(body, 'base64')
  // What is not UTF-8 would be read as other characters than were sent.
  if (!isUtf8(bytes)) throw new PmqError('bad_request', 'the body is not UTF-8')
  return checkSize(bytes.toString(), bytes.length)
}

function checkSize(text: string, bytes: number): string {
  if (bytes <= limits.maxRequestBytes) return text
  throw new PmqError('payload_too_large', `a request of ${bytes} bytes; at most ${limits.maxRequestBytes} are accepted`)
}

/** An absent body and the JSON text `null` are both `null`: some clients send the one, some the other. */
function parseJson(text: string): unknown {
  if (text.trim() === '') return null
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new PmqError('bad_request', 'the body is not JSON', { cause })
  }
}
