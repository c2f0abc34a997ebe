import type { Message } from '../../../sdk/src/index.ts'
import type { WebhookAnswer } from '../webhook/sender.ts'
import type { InvokeAnswer } from './invoke.ts'

/**
 * What has become of a call that was handed on.
 *
 * | the webhook | the function | then |
 * |---|---|---|
 * | answers 2xx with `{"suc":true,"failIds":[…]}` | returns that | `done`: those have failed, the others are done. Without `failIds`, or `null`, none has |
 * | answers 2xx with anything else: not JSON, `suc` missing or false, `failIds` with what is no id of the call or is there twice, cut | returns anything else | `failed`: all messages have |
 * | answers 1xx, 3xx, 4xx, 5xx, but for the two below | fails (`FunctionError`) | `failed` |
 * | has the request, and gives no answer in time, or none that is one | is invoked, and gives no answer in time | `failed`: it may have begun |
 * | answers 429 or 503 | is throttled, is not there, may not be invoked, or cannot be started | `not_started`: no attempt was made |
 * | cannot be reached | cannot be reached | `not_started` |
 */
export type PostOutcome =
  | { outcome: 'done'; failIds: number[] }
  | { outcome: 'failed'; error: string }
  | { outcome: 'not_started'; error: string; retryAfterMs?: number }

export function outcomeOfWebhook(answer: WebhookAnswer, messages: readonly Message[]): PostOutcome {
  if (answer.outcome === 'not_sent') return { outcome: 'not_started', error: answer.error }
  if (answer.outcome === 'no_answer') return failed(answer.error)
  const { status, body, isCut, retryAfterMs } = answer
  const error = `the target answered ${status}`
  if (status === 429 || status === 503)
    return { outcome: 'not_started', error, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  if (status < 200 || status > 299) return failed(error)
  return isCut ? failed(`${error}, with more than is read of an answer`) : readAnswer(body, messages)
}

export function outcomeOfFunction(answer: InvokeAnswer, messages: readonly Message[]): PostOutcome {
  switch (answer.outcome) {
    case 'returned':
      return readAnswer(answer.payload, messages)
    case 'not_started':
      return answer
    case 'function_failed':
    case 'no_answer':
      return failed(answer.error)
  }
}

/** Reads PMQ's ProxyResponse. An answer that cannot be read never counts as done. */
function readAnswer(text: string, messages: readonly Message[]): PostOutcome {
  let answer: { suc?: unknown; failIds?: unknown }
  try {
    answer = JSON.parse(text) ?? {}
  } catch {
    return failed('the answer is not JSON')
  }
  const { suc, failIds = null } = answer
  if (suc !== true) return failed(suc === false ? 'the target answered suc: false' : 'the answer has no suc')
  if (failIds === null) return { outcome: 'done', failIds: [] }
  if (!Array.isArray(failIds)) return failed('failIds of the answer is no list')
  // Before each is looked at: a list may have millions.
  if (failIds.length > messages.length)
    return failed(`failIds of the answer has ${failIds.length} entries, for ${messages.length} messages`)
  const open = new Set<unknown>(messages.map(({ offset }) => offset))
  if (!failIds.every(id => open.delete(id)))
    return failed('failIds of the answer has what is no id of the call, or one of them twice')
  return { outcome: 'done', failIds }
}

const failed = (error: string): PostOutcome => ({ outcome: 'failed', error })
