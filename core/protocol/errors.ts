/**
 * Every error the API can answer with: the one place where code, HTTP status and retry advice meet. Business refusals
 * of the client endpoints are not errors: they are HTTP 200 with `suc: false`, as PMQ's clients expect.
 */
export const errorTable = {
  bad_request: {
    status: 400,
    retryable: false,
    meaning: 'The request is not JSON, or a field has a wrong type or value.',
  },
  not_found: { status: 404, retryable: false, meaning: 'No such route, topic, group or queue.' },
  method_not_allowed: { status: 405, retryable: false, meaning: 'The path exists, the method does not.' },
  already_exists: { status: 409, retryable: false, meaning: 'Something of this name exists already.' },
  conflict: { status: 409, retryable: false, meaning: 'What is asked for does not go with the present state.' },
  payload_too_large: { status: 413, retryable: false, meaning: 'The request is larger than the service takes.' },
  throttled: { status: 429, retryable: true, meaning: 'The store asks for a slower pace; nothing was written.' },
  internal: { status: 500, retryable: true, meaning: 'Our fault. The request id finds it in the log.' },
  unavailable: { status: 503, retryable: true, meaning: 'The store did not answer; whether it wrote is unknown.' },
} as const

/** The code of an answer that is an error. */
export type ErrorCode = keyof typeof errorTable

/** A refusal that a caller can only report. `message` says what was refused, the value, and what would be accepted. */
export class PmqError extends Error {
  override name = 'PmqError' as const
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }

  get status(): number {
    return errorTable[this.code].status
  }

  get retryable(): boolean {
    return errorTable[this.code].retryable
  }
}
