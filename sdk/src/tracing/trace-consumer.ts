import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { PullResponse } from '../../../core/protocol/pull.ts'
import type { MessageHandler } from '../message.ts'
import { isThenable } from '../thenable.ts'
import { contained, endTrace } from './contained.ts'
import type { Tracing } from './tracing.ts'

type Ask = (queue: AssignedQueue, position: number, signal: AbortSignal) => Promise<PullResponse>

/** Asks with a trace of each answer and failure. */
export function tracePull(tracing: Tracing, ask: Ask): Ask {
  return async (queue, position, signal) => {
    const { consumerGroupName: groupName, topicName, queueId } = queue
    const trace = contained(() => tracing.pull({ groupName, topicName, queueId }))
    if (!trace) return ask(queue, position, signal)
    try {
      const answer = await ask(queue, position, signal)
      endTrace(trace, { result: (answer.batches ?? []).reduce((sum, { msgs }) => sum + msgs.length, 0) })
      return answer
    } catch (error) {
      if (!signal.aborted) endTrace(trace, { error })
      throw error
    }
  }
}

/** Calls a handler with a trace. One that returns at once still does. */
export function traceHandler(tracing: Tracing, handler: MessageHandler): MessageHandler {
  return (messages, context) => {
    const trace = contained(() => tracing.handle(messages, context))
    if (!trace) return handler(messages, context)
    const succeed = <Result>(result: Result) => {
      endTrace(trace, { result })
      return result
    }
    const fail = (error: unknown): never => {
      endTrace(trace, { error })
      throw error
    }
    let returned: ReturnType<MessageHandler>
    try {
      returned = trace.run(() => handler(messages, context))
    } catch (error) {
      return fail(error)
    }
    return isThenable(returned) ? settled(returned).then(succeed, fail) : succeed(returned)
  }
}

/** A promise of ours: the `then` of another one may throw. */
async function settled<Result>(promised: Result): Promise<Awaited<Result>> {
  return await promised
}
