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
  const result = v.safeParse(endpoint.request, json ?? {})
  if (result.success) return { request: result.output }
  throw new PmqError('bad_request', explain(result.issues))
}

function readText(event: APIGatewayProxyEventV2): string {
  const body = event.body ?? ''
  const text = event.isBase64Encoded ? Buffer.from(body, 'base64').toString() : body
  const bytes = Buffer.byteLength(text)
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

const maxIssues = 5

/** What is wrong where; without what a message's body held, which is nobody's business in an error text. */
function explain(issues: readonly v.BaseIssue<unknown>[]): string {
  const texts = issues.slice(0, maxIssues).map(issue => {
    const path = issue.path?.map(item => String(item.key)).join('.') || 'the body'
    return `${path}: ${issue.expected ? `expected ${issue.expected}` : issue.message}`
  })
  return texts.join('; ') + (issues.length > maxIssues ? `; and ${issues.length - maxIssues} more` : '')
}
