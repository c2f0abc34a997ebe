import { errorTable, type ErrorCode as ServiceErrorCode } from '../../core/protocol/errors.ts'

type ErrorRow = {
  /** The same call may succeed later. */
  retryable: boolean
  /** Whether the service did what it was asked is not known. */
  inDoubt: boolean
  meaning: string
}

/** What can go wrong in the client itself, by code. With the `errorTable` of the service's answers it is complete. */
export const clientErrorTable = {
  unreachable: { retryable: true, inDoubt: false, meaning: 'No connection could be made; nothing was sent.' },
  connection_lost: { retryable: true, inDoubt: true, meaning: 'The connection ended before the answer.' },
  timeout: { retryable: true, inDoubt: true, meaning: 'The answer took longer than requestTimeoutMs.' },
  bad_answer: { retryable: true, inDoubt: true, meaning: 'What came back is not an answer of the service.' },
  unexpected_status: {
    retryable: false,
    inDoubt: false,
    meaning: 'An HTTP status that the service does not use, as from a proxy.',
  },
  refused: { retryable: false, inDoubt: false, meaning: 'The service said no; the message carries its words.' },
  expired: { retryable: true, inDoubt: false, meaning: 'The service does not know the consumer any more.' },
  replaced: { retryable: false, inDoubt: false, meaning: 'Another consumer has taken the instanceId of this one.' },
  fenced: { retryable: false, inDoubt: false, meaning: 'The queue has another owner by now; nothing was recorded.' },
  handler_timeout: {
    retryable: true,
    inDoubt: true,
    meaning: 'A handler call took longer than its subscription lets it.',
  },
  consumer_lost: {
    retryable: true,
    inDoubt: true,
    meaning: 'A message was alone in the hands of a consumer that was lost, and counts as failed.',
  },
  invalid_result: {
    retryable: true,
    inDoubt: true,
    meaning: 'A handler returned neither nothing nor offsets of its messages, or a filter a promise.',
  },
  invalid_commit: {
    retryable: false,
    inDoubt: false,
    meaning: 'What was to be committed was not handed out, or cannot be committed so.',
  },
  postponed: {
    retryable: true,
    inDoubt: false,
    meaning: 'A handler has not begun with its messages: it is given them again, and nothing counts as a failure.',
  },
  aborted: { retryable: true, inDoubt: true, meaning: 'The caller gave the request up.' },
  closed: { retryable: false, inDoubt: false, meaning: 'The client, producer or transport is closed.' },
  buffer_full: { retryable: true, inDoubt: false, meaning: 'The producer holds as much as it may.' },
  deadline_exceeded: { retryable: true, inDoubt: true, meaning: 'publishTimeoutMs passed without a final answer.' },
  invalid_message: { retryable: false, inDoubt: false, meaning: 'A message breaks a limit; nothing was sent.' },
  pre_send_failed: { retryable: false, inDoubt: false, meaning: 'The preSend listener threw; nothing was sent.' },
  invalid_options: { retryable: false, inDoubt: false, meaning: 'An option is unknown or has a wrong value.' },
} as const satisfies Record<string, ErrorRow>

/** Every code that a `PmqClientError` can carry. */
export type ClientErrorCode = ServiceErrorCode | keyof typeof clientErrorTable

/** What is known of a failure besides its code and text. */
export type ErrorDetails = ErrorOptions & {
  /** HTTP status, if there was an answer. */
  status?: number | undefined
  /** Finds the failure in the service's log. */
  requestId?: string | undefined
  /** How long the service asks to wait before the next try, in milliseconds. */
  retryAfterMs?: number | undefined
}

/** Whatever a server or something in front of it asks for: a client that waits for a day is as good as dead. */
export const longestRetryAfterMs = 60_000

/** A failure that the caller can report, or wait out if `retryable`. `cause` has the error beneath, if there is one. */
export class PmqClientError extends Error {
  /** Tells the errors of this package by name, where `instanceof` cannot: across two copies of it. */
  override name = 'PmqClientError'
  /** What went wrong, to decide by. */
  readonly code: ClientErrorCode
  /** HTTP status, if there was an answer. */
  readonly status: number | undefined
  /** Finds the failure in the service's log. */
  readonly requestId: string | undefined
  /** How long the service asks to wait before the next try, in milliseconds. */
  readonly retryAfterMs: number | undefined

  constructor(code: ClientErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined)
    this.code = code
    this.status = details.status
    this.requestId = details.requestId
    const { retryAfterMs = -1 } = details
    this.retryAfterMs = retryAfterMs >= 0 ? Math.min(retryAfterMs, longestRetryAfterMs) : undefined
  }

  /** True if the same call may succeed later. */
  get retryable(): boolean {
    return rowOf(this.code).retryable
  }

  /** True if the service may have done what it was asked although no answer says so. */
  get inDoubt(): boolean {
    return rowOf(this.code).inDoubt
  }
}

/** Where a published message is: offset `offset` of queue `queueId`. */
export type PublishResult = { readonly queueId: number; readonly offset: number }

/** A publish that did not end with "stored". */
export class PublishError extends PmqClientError {
  /** As of `PmqClientError`. */
  override name = 'PublishError'
  /**
   * `not_stored`: certainly not, it may be published again. `unknown`: an attempt was sent and never answered, so it
   * may be stored; publishing it again may store it twice.
   */
  readonly outcome: 'not_stored' | 'unknown'
  /** For a publish of several messages: what became of each, in their order. */
  readonly results: readonly (PublishResult | PublishError)[] | undefined

  constructor(
    code: ClientErrorCode,
    message: string,
    details: ErrorDetails & {
      outcome: 'not_stored' | 'unknown'
      results?: readonly (PublishResult | PublishError)[] | undefined
    },
  ) {
    super(code, message, details)
    this.outcome = details.outcome
    this.results = details.results
  }
}

/** Anything thrown, as a `PmqClientError`. Where an answer is read, what is thrown says that it cannot be. */
export function asClientError(thrown: unknown, code: ClientErrorCode = 'bad_answer'): PmqClientError {
  if (thrown instanceof PmqClientError) return thrown
  return new PmqClientError(code, `The request failed: ${textOf(thrown)}`, { cause: thrown })
}

/** Also of what cannot be made a text, which would otherwise end the loop that only meant to report it. */
export function textOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown)
  } catch {
    return `${typeof thrown} that has no text`
  }
}

function rowOf(code: ClientErrorCode): { retryable: boolean; inDoubt: boolean } {
  if (code in clientErrorTable) return clientErrorTable[code as keyof typeof clientErrorTable]
  const { retryable, status } = errorTable[code as ServiceErrorCode]
  // A 5xx says that the service failed somewhere on the way; 429 and the other 4xx say that it did nothing.
  return { retryable, inDoubt: status >= 500 }
}
