import { limits } from '../../../core/protocol/limits.ts'
import { type ClientOptions, clientChecks, clientDefaults, requireService } from '../client-options.ts'
import { type ConsumerOptions, consumerChecks, consumerDefaults, requireGroup } from '../consumer-options.ts'
import { type Check, resolveOptions, wholeNumber } from '../options.ts'

/**
 * What a Lambda consumer works on and how: options of its client (but for `listeners`, which are a consumer's), of a
 * consumer, and its own.
 */
export type LambdaConsumerOptions = Omit<ClientOptions, 'listeners'> &
  Pick<
    ConsumerOptions,
    | 'groupName'
    | 'topics'
    | 'maxPullBytes'
    | 'maxCallBytes'
    | 'asyncCommitIntervalMs'
    | 'syncCommit'
    | 'ordering'
    | 'commit'
    | 'listeners'
    | 'warnTimeoutMs'
  > & {
    /** Queues that an invocation works on at a time. @default 10 */
    maxQueues?: number | undefined
    /**
     * How long before the end of its time an invocation aborts the calls that still run, in milliseconds: what it takes to
     * commit, to give the queues up, and to return. @default 3000
     */
    reserveMs?: number | undefined
    /**
     * How long before that it begins no more calls, in milliseconds, so that running ones can end. Never more than half of
     * the time that `reserveMs` leaves. @default 2000
     */
    stopTimeoutMs?: number | undefined
    /**
     * How long an invocation that has nothing else to do waits for messages that are not due yet, delayed or failed ones, in
     * milliseconds. What is due later is left to a later invocation. @default 5000
     */
    maxIdleMs?: number | undefined
    /**
     * The longest that an invocation lasts, in milliseconds, up to 15 minutes: for programs that have no context to give; in
     * Lambda the less of both counts. @default what the context says; 60000 without one
     */
    timeLimitMs?: number | undefined
    /** Messages of all queues together that are pulled and not handed out. The last answers may pass the bound. @default 10000 */
    maxBufferedMessages?: number | undefined
    /** The same for their texts, in bytes. @default 16777216 */
    maxBufferedBytes?: number | undefined
  }

/** Lambda consumer options with none left out. */
export type ResolvedLambdaOptions = ReturnType<typeof resolveLambdaOptions>

const lambdaDefaults = {
  ...clientDefaults,
  groupName: '',
  topics: {} as NonNullable<ConsumerOptions['topics']>,
  // Ten queues together then take little of the least memory that a function has.
  maxPullBytes: 256 * 1024,
  maxCallBytes: consumerDefaults.maxCallBytes,
  asyncCommitIntervalMs: consumerDefaults.asyncCommitIntervalMs,
  syncCommit: consumerDefaults.syncCommit,
  ordering: consumerDefaults.ordering,
  commit: consumerDefaults.commit,
  listeners: consumerDefaults.listeners,
  warnTimeoutMs: consumerDefaults.warnTimeoutMs,
  maxQueues: 10,
  // A commit and its repetition, behind a cold start of the service.
  reserveMs: 3_000,
  stopTimeoutMs: 2_000,
  // A function that waits is paid for.
  maxIdleMs: 5_000,
  timeLimitMs: undefined as number | undefined,
  maxBufferedMessages: 10_000,
  maxBufferedBytes: 16 * 1024 * 1024,
}

const { groupName, topics, maxPullBytes, maxCallBytes, asyncCommitIntervalMs, syncCommit } = consumerChecks
const { ordering, commit, listeners, warnTimeoutMs, maxBufferedMessages, maxBufferedBytes } = consumerChecks

const checks: Record<keyof LambdaConsumerOptions, Check> = {
  ...clientChecks,
  groupName,
  topics,
  maxPullBytes,
  maxCallBytes,
  asyncCommitIntervalMs,
  syncCommit,
  ordering,
  commit,
  listeners,
  warnTimeoutMs,
  maxBufferedMessages,
  maxBufferedBytes,
  maxQueues: wholeNumber(1, limits.maxQueuesPerClaim),
  reserveMs: wholeNumber(100, 60_000),
  stopTimeoutMs: wholeNumber(0, 600_000),
  maxIdleMs: wholeNumber(0, limits.maxLeaseMs),
  timeLimitMs: wholeNumber(1_000, limits.maxLeaseMs),
}

/** Fills in the defaults; throws a `PmqClientError` with code `invalid_options` for what cannot be. */
export function resolveLambdaOptions(given: LambdaConsumerOptions) {
  const options = resolveOptions('lambdaConsumer', given, lambdaDefaults, checks)
  requireService('lambdaConsumer', options)
  requireGroup('lambdaConsumer', options)
  return options
}
