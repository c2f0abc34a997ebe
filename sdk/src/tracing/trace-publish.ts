import { limits } from '../../../core/protocol/limits.ts'
import type { PublishResult } from '../errors.ts'
import type { NewMessage } from '../message.ts'
import type { Given, Settled } from '../producer.ts'
import { contained, endTrace } from './contained.ts'
import type { TraceOutcome, Tracing } from './tracing.ts'

/** Takes messages; throws, or tells once, later, what became of them. */
type Submit = (topicName: string, given: Given, mayWait: boolean, onSettled: (settled: Settled) => void) => void

/** A publish with a trace: what is to be published in place of what was given, and what is to be called at its end. */
type TracedPublish = { given: Given; end(outcome: TraceOutcome<Result>): void }
type Result = PublishResult | PublishResult[]

/** Publishes with a trace, whose context the messages carry. A publish never fails for that. */
export function traceSubmit(tracing: Tracing, submit: Submit): Submit {
  return (topicName, given, mayWait, onSettled) => {
    const trace = beginPublish(tracing, topicName, given)
    if (!trace) return submit(topicName, given, mayWait, onSettled)
    try {
      submit(topicName, trace.given, mayWait, settled => {
        trace.end(settled.error ? settled : { result: settled.result })
        onSettled(settled)
      })
    } catch (error) {
      trace.end({ error })
      throw error
    }
  }
}

function beginPublish(tracing: Tracing, topicName: string, given: Given): TracedPublish | undefined {
  const messages: readonly NewMessage[] = isMany(given) ? given : [given]
  const trace = contained(() => tracing.publish(topicName, messages))
  if (!trace) return undefined
  const carrying = Array.from(messages, message => contained(() => carry(message, trace.head)) ?? message)
  return {
    given: isMany(given) ? carrying : (carrying[0] as NewMessage),
    end(outcome) {
      endTrace(trace, 'error' in outcome ? outcome : { result: [outcome.result].flat() })
    },
  }
}

/** The message with these entries in its head. What is no message stays as it is, for its check to refuse. */
function carry(message: NewMessage, entries: Readonly<Record<string, string>>): NewMessage {
  if (typeof message !== 'object' || message === null) return message
  const head: unknown = message.head ?? {}
  if (typeof head !== 'object' || head === null || Array.isArray(head)) return message
  if (Object.keys(entries).some(name => Object.hasOwn(head, name))) return message
  return { ...message, head: fill(head as Record<string, string>, entries) }
}

/** As many of the entries as fit, in their order. */
function fill(head: Record<string, string>, entries: Readonly<Record<string, string>>): Record<string, string> {
  let filled = head
  for (const [name, value] of Object.entries(entries)) {
    const more = { ...filled, [name]: value }
    if (Object.keys(more).length > limits.maxHeadKeys) break
    if (Buffer.byteLength(JSON.stringify(more)) > limits.maxHeadBytes) break
    filled = more
  }
  return filled
}

/** `Array.isArray` alone does not tell a readonly array from an object. */
const isMany = (given: Given): given is readonly NewMessage[] => Array.isArray(given)
