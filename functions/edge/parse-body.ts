import { isUtf8 } from 'node:buffer'
import type { APIGatewayProxyEventV2 } from 'aws-lambda'
import * as v from 'valibot'
import type { Endpoint } from '../../core/protocol/endpoints.ts'
import { PmqError } from '../../core/protocol/errors.ts'
import { limits } from '../../core/protocol/limits.ts'

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
  // The first fault ends it: a request of some megabytes may have millions, which would not fit into memory.
  const result = v.safeParse(endpoint.request, json ?? {}, { abortEarly: true })
  if (result.success) return { request: result.output }
  throw new PmqError('bad_request', explain(result.issues[0]))
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

const maxPathLength = 200
/** Checks whose found value is a number or a length; what others have found may be a part of a message. */
const numericChecks = new Set(['max_length', 'max_entries', 'min_value', 'max_value', 'safe_integer'])

/** The keys of a map are its sender's, as its values are. */
const nameOf = (item: v.IssuePathItem) => (item.type === 'unknown' ? '*' : String(item.key))

/** What is wrong where; without what a message held, which is nobody's business in an error text. */
function explain(issue: v.BaseIssue<unknown>): string {
  const keys = issue.path?.map(nameOf).join('.') || 'the body'
  const path = keys.length > maxPathLength ? `${keys.slice(0, maxPathLength)}…` : keys
  const isUnknown = issue.type === 'strict_object' && issue.expected === 'never'
  if (isUnknown) return `${path}: no such field`
  const isMissing = issue.kind === 'schema' && issue.path?.at(-1)?.origin === 'key'
  if (isMissing) return `${path}: is required`
  if (issue.type === 'regex') return `${path}: ${issue.message}`
  const expected = issue.type === 'safe_integer' ? 'a whole number' : issue.expected
  return `${path}: expected ${expected}${numericChecks.has(issue.type) ? `, not ${issue.received}` : ''}`
}
