import type { PublishMessage } from '../../../core/protocol/publish.ts'
import { PublishError, type PublishResult } from '../errors.ts'

/** What became of one message. */
export type Outcome = PublishResult | PublishError

/** One call of `publish`, from its acceptance until each of its messages has an outcome. */
export type Call = {
  readonly messages: number
  readonly bytes: number
  /** When it was made and when it is to be answered at the latest, on the monotonic clock. */
  readonly calledAtMs: number
  readonly deadlineMs: number
  /** By index of the message; filled as answers come. */
  readonly outcomes: Outcome[]
  unsettled: number
  /** Called once, when every message has its outcome. */
  readonly onSettled: (call: Call) => void
}

/** The part of a call that travels together: consecutive messages, all with a key or all without. */
export type Part = {
  readonly call: Call
  /** Index of its first message in the call. */
  readonly first: number
  readonly messages: PublishMessage[]
  readonly bytes: number
  isSettled: boolean
}

/** Limits that every part keeps, since a part is never divided further. */
export type PartLimits = { maxBatchMessages: number; maxBatchBytes: number }

/** Divides a call: where messages with and without key meet, and where it is too large for one batch. */
export function divide(call: Call, messages: PublishMessage[], sizes: number[], limits: PartLimits): Part[] {
  const parts: Part[] = []
  let first = 0
  let bytes = 0
  for (let index = 0; index < messages.length; index++) {
    const size = sizes[index] ?? 0
    const isFull = index - first === limits.maxBatchMessages || bytes + size > limits.maxBatchBytes
    const isOtherKind = hasKey(messages[index]) !== hasKey(messages[first])
    if (index > first && (isFull || isOtherKind)) {
      parts.push({ call, first, messages: messages.slice(first, index), bytes, isSettled: false })
      first = index
      bytes = 0
    }
    bytes += size
  }
  const last = first === 0 ? messages : messages.slice(first)
  parts.push({ call, first, messages: last, bytes, isSettled: false })
  return parts
}

/** True if the service chooses the queue by the message's key. */
export function hasKey(message: PublishMessage | undefined): boolean {
  return typeof message?.key === 'string'
}

/** Gives a part its outcomes: those of `outcomes` from index `from` on. A second time changes nothing. */
export function settlePart(part: Part, outcomes: readonly Outcome[], from: number): void {
  if (part.isSettled) return
  part.isSettled = true
  const { call, first, messages } = part
  for (let index = 0; index < messages.length; index++) {
    call.outcomes[first + index] = outcomes[from + index] as Outcome
  }
  call.unsettled -= messages.length
  if (call.unsettled === 0) call.onSettled(call)
}

/** Gives every message of a part the same error. */
export function failPart(part: Part, error: PublishError): void {
  settlePart(part, new Array<Outcome>(part.messages.length).fill(error), 0)
}

/** What a publish of several messages rejects with when some of them failed. */
export function combineErrors(outcomes: readonly Outcome[]): PublishError | undefined {
  const failed = outcomes.filter(outcome => outcome instanceof PublishError)
  const [first] = failed
  if (!first) return undefined
  const outcome = failed.some(error => error.outcome === 'unknown') ? 'unknown' : 'not_stored'
  return new PublishError(first.code, `${failed.length} of ${outcomes.length} messages failed: ${first.message}`, {
    cause: first,
    outcome,
    results: outcomes,
  })
}
