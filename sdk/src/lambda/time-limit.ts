import { limits } from '../../../core/protocol/limits.ts'
import { invalidOption } from '../options.ts'
import type { ResolvedLambdaOptions } from './lambda-options.ts'

/** What is read of the context that Lambda gives. */
export type LambdaContext = {
  /** How long the invocation may still last, in milliseconds. */
  getRemainingTimeInMillis(): number
  readonly functionName?: string
  readonly awsRequestId?: string
  /** Ends the invocation when it aborts, as if its time to work was up. Lambda itself gives none. */
  readonly signal?: AbortSignal
}

/** Where nobody says how long an invocation may last: what a job of each minute has. */
const defaultLimitMs = 60_000

/**
 * How long an invocation may last, in milliseconds. Asked once, at its beginning, and measured by the monotonic clock from
 * then on: the wall clock may be set right when a process has been thawed. Never longer than a claim can last, so that no
 * lease has to be renewed. Throws where it leaves no time to work in.
 */
export function timeLimitOf(
  context: LambdaContext | undefined,
  { timeLimitMs, reserveMs }: Pick<ResolvedLambdaOptions, 'timeLimitMs' | 'reserveMs'>,
): number {
  const leftMs = remainingMs(context)
  const limitMs = Math.min(leftMs ?? timeLimitMs ?? defaultLimitMs, timeLimitMs ?? limits.maxLeaseMs, limits.maxLeaseMs)
  // Also true where it is not a number.
  if (!(limitMs > reserveMs)) {
    const advice = 'give the function more time, or make reserveMs less'
    throw invalidOption(
      `lambdaConsumer: there are ${limitMs} ms for the invocation, and reserveMs (${reserveMs}) of them are kept; ${advice}`,
    )
  }
  return limitMs
}

/** Undefined without a context. Functions are called by many things that pass something else in its place. */
function remainingMs(context: LambdaContext | undefined): number | undefined {
  if (context === undefined || context === null) return undefined
  if (typeof context.getRemainingTimeInMillis === 'function') return context.getRemainingTimeInMillis()
  throw invalidOption(
    'lambdaConsumer: the context has no function getRemainingTimeInMillis; ' +
      'the second argument must be what Lambda passes, or be left out and timeLimitMs be given',
  )
}
