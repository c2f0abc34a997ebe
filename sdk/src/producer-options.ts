import { limits } from '../../core/protocol/limits.ts'
import { type Check, invalidOption, oneOf, resolveOptions, wholeNumber } from './options.ts'

/** How a producer gathers, bounds and retries. */
export type ProducerOptions = {
  /**
   * How long a first message waits for company when nothing is under way, in milliseconds. 0: until the end of the
   * event loop's turn. Behind a request under way messages gather in any case.
   * @default 0
   */
  lingerMs?: number | undefined
  /** Messages in one request. @default 1000 */
  maxBatchMessages?: number | undefined
  /** Texts of the messages in one request, in bytes of UTF-8. A single larger message travels alone. @default 524288 */
  maxBatchBytes?: number | undefined
  /**
   * Requests under way for one topic, for messages without a key. Messages with a key always travel one request at a
   * time, since a retry would let later ones of the same key pass.
   * @default 4
   */
  maxInFlight?: number | undefined
  /** Messages that are accepted and not settled. @default 100000 */
  maxBufferedMessages?: number | undefined
  /** The same in bytes. @default 67108864 */
  maxBufferedBytes?: number | undefined
  /** What `publish` does when the producer holds that much: wait for room, or reject with code `buffer_full`. @default 'wait' */
  whenFull?: 'wait' | 'reject' | undefined
  /** When a publish is given up, in milliseconds from the call; every wait and retry counts. @default 30000 */
  publishTimeoutMs?: number | undefined
}

/** Producer options with none left out. */
export type ResolvedProducerOptions = { [Name in keyof ProducerOptions]-?: NonNullable<ProducerOptions[Name]> }

/** What a producer does unless told otherwise. */
export const producerDefaults: ResolvedProducerOptions = {
  lingerMs: 0,
  maxBatchMessages: limits.maxMessagesPerPublish,
  // Two stored batches or so: a larger request gains nothing and makes a longer retry.
  maxBatchBytes: 512 * 1024,
  maxInFlight: 4,
  // About a second of the greatest rate, so that a short stop of the service is bridged.
  maxBufferedMessages: 100_000,
  maxBufferedBytes: 64 * 1024 * 1024,
  whenFull: 'wait',
  // The patience of an HTTP caller behind an API gateway.
  publishTimeoutMs: 30_000,
}

/** JSON writes a control character as six bytes: below this, a request keeps the service's bound whatever it holds. */
const greatestBatchBytes = Math.floor(limits.maxRequestBytes / 6)

const checks: Record<keyof ProducerOptions, Check> = {
  lingerMs: wholeNumber(0, 60_000),
  maxBatchMessages: wholeNumber(1, limits.maxMessagesPerPublish),
  maxBatchBytes: wholeNumber(1, greatestBatchBytes),
  maxInFlight: wholeNumber(1, 64),
  maxBufferedMessages: wholeNumber(1, 10_000_000),
  maxBufferedBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  whenFull: oneOf('wait', 'reject'),
  publishTimeoutMs: wholeNumber(1, 3_600_000),
}

/** Fills in the defaults; throws a `PmqClientError` with code `invalid_options` for what cannot be. */
export function resolveProducerOptions(given: ProducerOptions): ResolvedProducerOptions {
  const options = resolveOptions('producer', given, producerDefaults, checks)
  const { maxBatchMessages, maxBufferedMessages, maxBatchBytes, maxBufferedBytes, lingerMs, publishTimeoutMs } = options
  if (maxBufferedMessages < maxBatchMessages)
    throw invalidOption(
      `producer: maxBufferedMessages (${maxBufferedMessages}) must be at least maxBatchMessages (${maxBatchMessages})`,
    )
  if (maxBufferedBytes < maxBatchBytes)
    throw invalidOption(
      `producer: maxBufferedBytes (${maxBufferedBytes}) must be at least maxBatchBytes (${maxBatchBytes})`,
    )
  if (lingerMs >= publishTimeoutMs)
    throw invalidOption(`producer: lingerMs (${lingerMs}) must be below publishTimeoutMs (${publishTimeoutMs})`)
  return options
}
