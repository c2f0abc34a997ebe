import { limits } from '../../core/protocol/limits.ts'
import { type ConsumerListeners, checkListeners } from './consumer-listeners.ts'
import type { EventListener } from './events.ts'
import type { MessageHandler } from './message.ts'
import {
  type Check,
  invalidOption,
  isBoolean,
  isFunction,
  isObject,
  isText,
  matching,
  oneOf,
  resolveOptions,
  wholeNumber,
} from './options.ts'

/**
 * What a consumer works on and how. How many handler calls run at once (`threadSize`), how many messages one gets
 * (`consumerBatchSize`) and the longest pause between pulls (`maxPullTime`) are settings of the subscription on the
 * service; a change of them applies at once, without a restart.
 */
export type ConsumerOptions = {
  /** The consumer group, which must exist. */
  groupName: string
  /** A handler for each topic; the group must subscribe to them. */
  topics: Readonly<Record<string, MessageHandler>>
  /**
   * Names the place of this consumer in its group, across restarts: whoever joins with it has the queues of the one
   * before at once, without waiting for that to be found dead, and the other members keep theirs. So `stop` does not
   * leave the group: the queues wait for the next one until the session times out (30 s). Unique among the running
   * consumers of the group, such as the name of a StatefulSet's pod: of two with the same one the later takes the place,
   * and the earlier stops with the event `replaced`. 1 to 100 of A-Z, a-z, 0-9, dot, underscore and hyphen.
   * @default none: each start is a new member, and `stop` leaves
   */
  instanceId?: string | undefined
  /** Texts asked for with one pull, in bytes. @default 1048576 */
  maxPullBytes?: number | undefined
  /**
   * The longest that the service is asked to hold a pull while there is no message, in milliseconds; it may hold it
   * shorter. The subscription's `maxPullTime` bounds it as well.
   * @default 5000
   */
  maxPullWaitMs?: number | undefined
  /** How much longer each pause between pulls of an empty queue is than the one before, in milliseconds. @default 150 */
  pullDeltaTimeMs?: number | undefined
  /**
   * Messages of one queue that are pulled and not handed out; also how many may be done behind one that is not. A full
   * buffer stops the pulls. The last answer may pass the bound.
   * @default 10000
   */
  maxBufferedMessages?: number | undefined
  /** The same for their texts, in bytes. @default 4194304 */
  maxBufferedBytes?: number | undefined
  /** The texts of the messages of one call together, in bytes; its last message may pass the bound. @default none */
  maxCallBytes?: number | undefined
  /** How long progress gathers before it is committed, in milliseconds. A crash repeats what was not committed. @default 500 */
  asyncCommitIntervalMs?: number | undefined
  /** Commit whenever messages are done, instead of every `asyncCommitIntervalMs`: fewer repetitions, more requests. @default false */
  syncCommit?: boolean | undefined
  /** How long `stop` lets running handler calls end, in milliseconds, before it aborts their signals. @default 10000 */
  stopTimeoutMs?: number | undefined
  /** The same for a queue that goes to another consumer while this one goes on. @default 50000 */
  revokeTimeoutMs?: number | undefined
  /** The longest time between two heartbeats, in milliseconds; less where the service asks for it. @default 10000 */
  heartbeatIntervalMs?: number | undefined
  /**
   * What keeps its order. `queue`: calls of a queue begin in offset order, `threadSize` of them side by side. `key`:
   * besides, no two messages of one key are ever handled at the same time, however great `threadSize` is: a call gets
   * one message of a key at most, and the next one waits for the end of the call, also while its failure is repeated in
   * place or brought to the fail topic. Other keys, and messages without one, go on, as far as the buffer reaches. For all
   * topics, or by topic.
   * @default 'queue'
   */
  ordering?: Ordering | Readonly<Record<string, Ordering>> | undefined
  /**
   * `auto`: what handlers are done with is committed. `manual`: only what a handler's `context.commit` says, and what was
   * passed over before that. A call that fails is repeated in place then. What was handed out and is not committed counts
   * as being worked on: it bounds what is handed out (`maxBufferedMessages`, `maxBufferedBytes`), and a stop gives it its
   * time to be committed.
   * @default 'auto'
   */
  commit?: 'auto' | 'manual' | undefined
  /** Called around the handler. @default none */
  listeners?: ConsumerListeners | undefined
  /**
   * After how long a handler call that runs, or the `preHandle` before it, is told as slow, and how often again, in
   * milliseconds. @default 300000
   */
  warnTimeoutMs?: number | undefined
  /**
   * How often what the consumer works with is compared with what the service says, in milliseconds, where nothing else
   * was asked for; 0: never. It costs a request. What differs in four looks within half a minute is told by the event
   * `settings_differ`, and the consumer takes over what the service says.
   * @default 300000
   */
  settingsCheckIntervalMs?: number | undefined
  /** Takes the events of this consumer, in place of the client's listener. */
  onEvent?: EventListener | undefined
}

/** What keeps its order: the queue, or each key too. */
export type Ordering = 'queue' | 'key'

/** Consumer options with none left out. */
export type ResolvedConsumerOptions = {
  [Name in Exclude<keyof ConsumerOptions, 'onEvent' | 'instanceId'>]-?: NonNullable<ConsumerOptions[Name]>
} & { onEvent: EventListener | undefined; instanceId: string | undefined }

/** A bound that is none. */
export const unbounded = Number.MAX_SAFE_INTEGER

/** What a consumer does unless told otherwise. */
export const consumerDefaults: Omit<ResolvedConsumerOptions, 'groupName' | 'topics'> = {
  instanceId: undefined,
  // Some thousand small messages: the price of a request no longer counts.
  maxPullBytes: 1024 * 1024,
  maxPullWaitMs: 5_000,
  pullDeltaTimeMs: 150,
  maxBufferedMessages: 10_000,
  maxBufferedBytes: 4 * 1024 * 1024,
  maxCallBytes: unbounded,
  asyncCommitIntervalMs: 500,
  syncCommit: false,
  // What container platforms usually leave between SIGTERM and SIGKILL is 10 to 30 seconds.
  stopTimeoutMs: 10_000,
  // The service gives the queue away after 60 s, whether its former owner has finished or not.
  revokeTimeoutMs: 50_000,
  // A third of the 30 s after which the service gives a consumer up.
  heartbeatIntervalMs: 10_000,
  ordering: 'queue',
  commit: 'auto',
  listeners: {},
  // PMQ's.
  warnTimeoutMs: 300_000,
  // For what should never happen: seldom enough to cost nothing, often enough to be over before somebody wonders.
  settingsCheckIntervalMs: 300_000,
  onEvent: undefined,
}

const isOrdering = oneOf('queue', 'key')

/** What each option must be. */
export const consumerChecks: Record<keyof ConsumerOptions, Check> = {
  groupName: isText,
  topics: value => {
    const handlers = typeof value === 'object' && value !== null ? Object.values(value) : []
    return handlers.length > 0 && handlers.every(handler => typeof handler === 'function')
      ? undefined
      : 'an object with a function for each topic, and at least one'
  },
  instanceId: matching(limits.namePattern, limits.nameRule),
  maxPullBytes: wholeNumber(1, limits.maxPullBytes),
  maxPullWaitMs: wholeNumber(0, limits.maxMaxPullTimeSeconds * 1000),
  pullDeltaTimeMs: wholeNumber(10, 60_000),
  maxBufferedMessages: wholeNumber(1, 10_000_000),
  maxBufferedBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  maxCallBytes: wholeNumber(1, unbounded),
  asyncCommitIntervalMs: wholeNumber(10, 60_000),
  syncCommit: isBoolean,
  stopTimeoutMs: wholeNumber(0, 3_600_000),
  revokeTimeoutMs: wholeNumber(0, 3_600_000),
  heartbeatIntervalMs: wholeNumber(1_000, 15_000),
  ordering: value => {
    const orderings = isObject(value) ? [value] : Object.values(value as object)
    return orderings.every(ordering => isOrdering(ordering) === undefined)
      ? undefined
      : "'queue' or 'key', or an object with one of them for each topic"
  },
  commit: oneOf('auto', 'manual'),
  listeners: checkListeners,
  warnTimeoutMs: wholeNumber(1, 86_400_000),
  settingsCheckIntervalMs: wholeNumber(0, 86_400_000),
  onEvent: isFunction,
}

/** Fills in the defaults; throws a `PmqClientError` with code `invalid_options` for what cannot be. */
export function resolveConsumerOptions(given: ConsumerOptions): ResolvedConsumerOptions {
  const missing = { groupName: '', topics: {} }
  const options = resolveOptions<ResolvedConsumerOptions>(
    'consumer',
    given,
    { ...consumerDefaults, ...missing },
    consumerChecks,
  )
  requireGroup('consumer', options)
  return options
}

/** Throws unless the options say what to work on. */
export function requireGroup(what: string, options: Pick<ResolvedConsumerOptions, 'groupName' | 'topics'>): void {
  const { groupName, topics } = options
  if (groupName === '') throw invalidOption(`${what}: groupName is missing; give the name of a consumer group`)
  if (Object.keys(topics).length === 0) throw invalidOption(`${what}: topics is missing; give a handler for each topic`)
}

/** What keeps its order in a topic. */
export function orderingOf({ ordering }: Pick<ResolvedConsumerOptions, 'ordering'>, topicName: string): Ordering {
  if (typeof ordering === 'string') return ordering
  return (Object.hasOwn(ordering, topicName) ? ordering[topicName] : undefined) ?? 'queue'
}
