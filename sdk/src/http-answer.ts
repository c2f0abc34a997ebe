import type { IncomingMessage } from 'node:http'
import { type ErrorCode, errorTable } from '../../core/protocol/errors.ts'
import { readRetryAfter } from '../../core/protocol/retry-after.ts'
import { type ClientErrorCode, PmqClientError } from './errors.ts'

/** What an error says at most of a foreign text. */
const maxTextLength = 500

/** The JSON of a successful answer; every other answer is thrown as the error that it stands for. */
export function readHttpAnswer(incoming: IncomingMessage, chunks: Buffer[], place: string, nowMs: number): unknown {
  const status = incoming.statusCode ?? 0
  const text = chunks.length === 1 ? String(chunks[0]) : Buffer.concat(chunks).toString()
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    // Without a cause: the parser quotes what it could not read, which may be a message.
    if (status === 200) throw new PmqClientError('bad_answer', `${place} answered with what is not JSON.`, { status })
  }
  if (status === 200) return body

  const { code, message, requestId } = readErrorBody(body)
  throw new PmqClientError(codeOf(status, code), `${place} answered ${status}${message && `: ${message}`}`, {
    status,
    requestId,
    retryAfterMs: readRetryAfter(incoming.headers['retry-after'], nowMs),
  })
}

/** The service's own code where there is one; a gateway in front of it answers with statuses alone. */
function codeOf(status: number, code: string): ClientErrorCode {
  if (Object.hasOwn(errorTable, code)) return code as ErrorCode
  if (status === 400) return 'bad_request'
  if (status === 404) return 'not_found'
  if (status === 408) return 'timeout'
  if (status === 413) return 'payload_too_large'
  if (status === 429) return 'throttled'
  if (status === 500) return 'internal'
  return status > 500 ? 'unavailable' : 'unexpected_status'
}

function readErrorBody(body: unknown): { code: string; message: string; requestId: string | undefined } {
  const { code, message, requestId } = (body ?? {}) as Record<string, unknown>
  return {
    code: typeof code === 'string' ? code : '',
    message: typeof message === 'string' ? message.slice(0, maxTextLength) : '',
    requestId: typeof requestId === 'string' ? requestId : undefined,
  }
}
