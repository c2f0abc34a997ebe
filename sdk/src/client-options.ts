import { type Clock, systemClock } from '../../core/protocol/clock.ts'
import type { EventListener } from './events.ts'
import type { Listeners } from './listeners.ts'
import { type Check, invalidOption, isFunction, isObject, isText, resolveOptions, wholeNumber } from './options.ts'
import type { Tracing } from './tracing/tracing.ts'
import type { Transport } from './transport.ts'

/** How to reach the service, and how requests are made. */
export type ClientOptions = {
  /**
   * Base URL of the service, `http:` or `https:`; may have a path. Of several, of one and the same service, one is used,
   * any at first; when it fails (unreachable, connection lost, time-out, status 502, 503 or 504) the next one is, and the
   * failed one rests until its turn comes again.
   */
  url?: string | readonly string[] | undefined
  /** Headers of every request, such as `authorization`. */
  headers?: Readonly<Record<string, string>> | undefined
  /** The longest wait for an answer, in milliseconds; pulls may take as much longer as they are allowed to be held. @default 10000 */
  requestTimeoutMs?: number | undefined
  /** The largest answer that is read, in bytes. @default 16777216 */
  maxAnswerBytes?: number | undefined
  /** Takes the events of all producers and consumers of the client. @default a process warning for each kind of trouble, once */
  onEvent?: EventListener | undefined
  /** Follows publishes, pulls and handler calls, such as `openTelemetry()` of `pmq-sdk/otel`. @default none */
  tracing?: Tracing | undefined
  /** Functions that take part in what the client does. @default none */
  listeners?: Listeners | undefined
  /** Carries requests in place of HTTP, such as to a service in the same process; `url` and `headers` are not used then. */
  transport?: Transport | undefined
  /** The clock that everything waits by. @default the system's */
  clock?: Clock | undefined
  /** The source of chance, from 0 up to 1. @default Math.random */
  random?: (() => number) | undefined
}

/** Client options with none left out. */
export type ResolvedClientOptions = typeof clientDefaults

/** What a client does unless told otherwise. */
export const clientDefaults = {
  url: '' as string | readonly string[],
  headers: {} as Readonly<Record<string, string>>,
  // PMQ's; above what a cold function takes, below the 30 s of an API gateway.
  requestTimeoutMs: 10_000,
  // Four times what the service sends at most for one pull: its bound is on compressed batches' texts, not on JSON.
  maxAnswerBytes: 16 * 1024 * 1024,
  onEvent: undefined as EventListener | undefined,
  tracing: undefined as Tracing | undefined,
  listeners: {} as Listeners,
  transport: undefined as Transport | undefined,
  clock: systemClock as Clock,
  random: Math.random,
}

const listenerDefaults: Listeners = {}
const listenerChecks: Record<keyof Listeners, Check> = { preSend: isFunction }

const isTexts = (value: unknown) =>
  Array.isArray(value) ? value.length > 0 && Array.from(value).every(text => !isText(text)) : !isText(value)

/** What each option must be. */
export const clientChecks: Record<keyof ClientOptions, Check> = {
  url: value => (isTexts(value) ? undefined : 'a non-empty string, or an array of some'),
  headers: isObject,
  requestTimeoutMs: wholeNumber(1, 600_000),
  maxAnswerBytes: wholeNumber(1024, 1024 * 1024 * 1024),
  onEvent: isFunction,
  tracing: isObject,
  listeners: isObject,
  transport: isFunction,
  clock: isObject,
  random: isFunction,
}

/** Fills in the defaults; throws a `PmqClientError` with code `invalid_options` for what cannot be. */
export function resolveClientOptions(given: ClientOptions): ResolvedClientOptions {
  const options = resolveOptions('client', given, clientDefaults, clientChecks)
  requireService('client', options)
  const listeners = resolveOptions('listeners', options.listeners, listenerDefaults, listenerChecks)
  return { ...options, listeners }
}

/** Throws unless the options say where the service is. */
export function requireService(
  what: string,
  { transport, url }: Pick<ResolvedClientOptions, 'transport' | 'url'>,
): void {
  if (!transport && url === '') throw invalidOption(`${what}: url is missing; give the URL of the service`)
}
