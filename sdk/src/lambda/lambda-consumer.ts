import { type Connection, createConnection } from '../connection.ts'
import { makeConsumerName, makeSuffix } from '../identity.ts'
import { hintsFor } from './hints.ts'
import { runInvocation } from './invocation.ts'
import { type LambdaConsumerOptions, resolveLambdaOptions } from './lambda-options.ts'
import { type LambdaContext, timeLimitOf } from './time-limit.ts'

export type { LambdaConsumerOptions, LambdaContext }

/** What an invocation has done. */
export type LambdaReport = {
  /** Messages that the handlers are done with. */
  handled: number
  /** Messages with which a handler call has failed; one that fails repeatedly counts each time. */
  failed: number
  /** Queues that were worked on. */
  queues: number
  /**
   * True: there was nothing left to handle. False: the time was up, or the service was away; there may be more. Messages
   * that are not due yet do not count.
   */
  isDrained: boolean
  /** When the first of those is due, milliseconds since 1970; undefined where this invocation has met none. */
  nextDueAtMs?: number
}

/** A handler as AWS Lambda calls it; without a context, as any program may. */
export type LambdaHandler = (event?: unknown, context?: LambdaContext) => Promise<LambdaReport>

/**
 * Makes the handler of a Lambda function that works through the queues of a group of mode `claimed`: it claims some that
 * have messages, for as long as the invocation may last, calls the handlers of `topics` as a consumer does (see
 * `MessageHandler`), commits, gives the queues up, and claims again until there is nothing more or the time is up.
 *
 * ```ts
 * export const handler = lambdaConsumer({
 *   url: 'https://pmq.example.com',
 *   groupName: 'billing',
 *   topics: { orders: async messages => { for (const { body } of messages) console.log(body) } },
 * })
 * ```
 *
 * | then | and |
 * |---|---|
 * | nothing is left | the queues are given up; the invocation ends |
 * | messages are not due yet | it waits for up to `maxIdleMs`, or leaves them to a later invocation |
 * | the time is nearly up | no more calls begin; running ones end, or are aborted `reserveMs` before; what is done is committed |
 * | the function is killed | its queues are free when its time would have been up; what was not committed is handed out again |
 * | the service is away | what was handled stays committed; with nothing handled the invocation rejects, so that Lambda tries again |
 *
 * Invocations may run side by side: each queue is one's alone. Between them nothing runs, and no connection is held.
 * The event may be anything. A notification of the service, `{ msgNotifyDtos: [{ queueId, consumerGroupName }] }`, names the
 * queues that come first; one for other groups alone does nothing.
 *
 * Throws a `PmqClientError` with code `invalid_options` for options that cannot be. The handler rejects with one where
 * nothing could be done at all: the service is away (`unreachable`, `timeout`, …), it has refused the claim (`refused`: such
 * as a group that is not there or not of mode `claimed`), or there is no time beyond `reserveMs`, or
 * a context without `getRemainingTimeInMillis` (`invalid_options`).
 */
export function lambdaConsumer(given: LambdaConsumerOptions): LambdaHandler {
  const options = resolveLambdaOptions(given)
  let connection: Connection | undefined

  return async (event, context) => {
    const hints = hintsFor(options.groupName, event)
    if (hints === 'for others') return { handled: 0, failed: 0, queues: 0, isDrained: true }
    const timeLimitMs = timeLimitOf(context, options)
    connection ??= createConnection(options)
    const { clientIp, clock, random } = connection
    const claimant = nameOf(context, random) ?? makeConsumerName(clientIp, clock.now(), random)
    try {
      return await runInvocation({ ...connection, claimant, options, signal: context?.signal }, timeLimitMs, hints)
    } finally {
      // One that dies while the process is frozen would cost the next claim its answer, and the queues their lease.
      connection.endIdle()
    }
  }
}

/**
 * Whoever asks who holds a queue finds the invocation's log by it. A repeated invocation has the id of the one before, which
 * may run still.
 */
function nameOf(context: LambdaContext | undefined, random: () => number): string | undefined {
  const { functionName, awsRequestId } = context ?? {}
  return functionName && awsRequestId ? `${functionName} ${awsRequestId} ${makeSuffix(random)}` : undefined
}
