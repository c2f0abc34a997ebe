import type { FailureCause } from '../../../core/protocol/failures.ts'
import { PmqClientError } from '../errors.ts'
import type { Message } from '../message.ts'
import { ignoreRejection } from '../thenable.ts'

/** Which messages of a call have failed, and why: there is no `error` where the handler has named them itself. */
export type CallFailure = { messages: readonly Message[]; error: unknown; isNamed?: true }

/** What a handler's result says of its messages; undefined if they are all done. Never throws. */
export function readResult(result: unknown, messages: readonly Message[]): CallFailure | undefined {
  if (result === undefined || result === null) return undefined
  try {
    return readOffsets(result, messages)
  } catch (error) {
    // Even to look at it may throw, where it is a proxy.
    return { messages, error }
  }
}

function readOffsets(result: unknown, messages: readonly Message[]): CallFailure | undefined {
  if (!Array.isArray(result)) return { messages, error: invalidResult(kindOf(result)) }
  const named = new Set<unknown>(result)
  const failed = messages.filter(({ offset }) => named.delete(offset))
  const [unknown] = named
  // As of `messages.map(async …)`: one of those promises that rejects is no other failure than this.
  for (const value of named) if (typeof value === 'object') void ignoreRejection(value)
  if (named.size > 0) return { messages, error: invalidResult(`an array with ${kindOf(unknown)}`) }
  return failed.length > 0 ? { messages: failed, error: undefined, isNamed: true } : undefined
}

/** The error of a call that has taken too long. */
export function handlerTimeout(ms: number): PmqClientError {
  return new PmqClientError(
    'handler_timeout',
    `The handler took longer than the ${Math.round(ms) / 1000} s of its subscription.`,
  )
}

/**
 * Whether a handler says that it has not begun. By name: an error of another copy of this package, as two entries bundled
 * apart have them, is one too. Never throws.
 */
export function isPostponed(error: unknown): error is PmqClientError {
  try {
    const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown }
    return error instanceof Error && name === 'PmqClientError' && code === 'postponed'
  } catch {
    return false
  }
}

function invalidResult(what: string): PmqClientError {
  const text = `The handler returned ${what}; it must return nothing, or an array of offsets of its messages.`
  return new PmqClientError('invalid_result', text)
}

/** Never a text, which may be of a message. */
function kindOf(value: unknown): string {
  if (typeof value === 'number') return String(value)
  if (value === null) return 'null'
  return Array.isArray(value) ? 'an array' : typeof value
}

/** What the service is told of why messages have failed. Never throws, whatever was thrown. */
export function causeOf({ error, isNamed }: Pick<CallFailure, 'error' | 'isNamed'>): FailureCause {
  if (isNamed) return { kind: 'returned' }
  try {
    if (!(error instanceof Error)) return { kind: 'threw', text: String(error).slice(0, maxTextLength) }
    const { code, name, message } = error as Error & { code?: unknown }
    const isOurs = error instanceof PmqClientError
    const kind =
      isOurs && code === 'handler_timeout' ? 'timed_out' : isOurs && code === 'invalid_result' ? code : 'threw'
    const text = isOurs ? message : `${name}: ${message}`
    return { kind, text: text.slice(0, maxTextLength) }
  } catch {
    return { kind: 'threw' }
  }
}

/** What the service keeps of it. */
const maxTextLength = 1000
