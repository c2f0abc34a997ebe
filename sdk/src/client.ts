import { type Clock, systemClock } from '../../core/protocol/clock.ts'
import { createApi } from './api.ts'
import { type Consumer, createConsumer } from './consumer.ts'
import type { ConsumerOptions } from './consumer-options.ts'
import { PmqClientError } from './errors.ts'
import { containListener, type EventListener } from './events.ts'
import { createFailover } from './failover.ts'
import { describeClient } from './identity.ts'
import type { Listeners } from './listeners.ts'
import type { NotifyHint } from './notify/hints.ts'
import { type Check, invalidOption, isFunction, isObject, isText, resolveOptions, wholeNumber } from './options.ts'
import { type CloseOptions, createProducer, type Producer } from './producer.ts'
import type { ProducerOptions } from './producer-options.ts'
import type { Tracing } from './tracing/tracing.ts'
import { createHttpTransport, type HttpTransport, type Transport } from './transport.ts'
import { createWarner } from './warn.ts'

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

/** A client of one service. */
export interface Client extends AsyncDisposable {
  /** As `Producer.publish`, by a producer with default options that the client's callers share. */
  publish: Producer['publish']
  /** As `Producer.publishAsync`, by the same producer. */
  publishAsync: Producer['publishAsync']
  /** Makes a producer with options of its own. */
  producer(options?: ProducerOptions): Producer
  /** Makes a consumer. It does nothing until its `start`. */
  consumer(options: ConsumerOptions): Consumer
  /**
   * Takes hints that there are messages, such as those of a notify receiver: consumers that pause between their pulls of
   * these queues pull at once. A queue's id is its own whatever the group, so each consumer that has it is woken. Harmless
   * at any time, and twice. Can be passed on without its object.
   */
  notified(hints: readonly NotifyHint[]): void
  /**
   * Stops all consumers, closes all producers, ends the connections: the process can exit then. With `timeoutMs` each
   * producer has this long, from when the consumers have stopped. Safe to call twice; never rejects.
   */
  close(options?: CloseOptions): Promise<void>
}

const clientDefaults = {
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
  Array.isArray(value) ? value.length > 0 && value.every(text => !isText(text)) : !isText(value)

const checks: Record<keyof ClientOptions, Check> = {
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

/**
 * Makes a client. It opens no connection before it needs one.
 *
 * ```ts
 * const client = createClient({ url: 'http://localhost:8080' })
 * await client.publish('orders', { body: '{"id":1}' })
 * await client.close()
 * ```
 *
 * Throws a `PmqClientError` with code `invalid_options` for options that cannot be.
 */
export function createClient(given: ClientOptions): Client {
  const options = resolveOptions('client', given, clientDefaults, checks)
  const { clock, random, requestTimeoutMs, tracing } = options
  if (!options.transport && options.url === '')
    throw invalidOption('client: url is missing; give the URL of the service')
  const { preSend } = resolveOptions('listeners', options.listeners, listenerDefaults, listenerChecks)
  const { call, close: closeTransport } = options.transport
    ? { call: options.transport, close: () => undefined }
    : connect(options)
  const identity = describeClient()
  const api = createApi(call, identity)
  const emit = containListener(options.onEvent ?? createWarner())
  const deps = { api, clock, random, requestTimeoutMs, preSend, tracing, emit }
  const producers = new Set<Producer>()
  const consumers = new Set<Consumer>()
  let closed: Promise<void> | undefined

  function addProducer(producerOptions: ProducerOptions): Producer {
    const made = createProducer({ ...deps, onClosed: () => producers.delete(made) }, producerOptions)
    producers.add(made)
    return made
  }

  function producer(producerOptions: ProducerOptions = {}): Producer {
    checkOpen()
    return addProducer(producerOptions)
  }

  function consumer(consumerOptions: ConsumerOptions): Consumer {
    checkOpen()
    const { clientIp } = identity
    // Only those that run are known here: a client may see many come and go.
    const onStarted = () => {
      checkOpen()
      consumers.add(made)
    }
    const onStopped = () => consumers.delete(made)
    const made = createConsumer({ ...deps, clientIp, onStarted, onStopped }, consumerOptions)
    return made
  }

  function notified(hints: readonly NotifyHint[]) {
    const queueIds = hints.flatMap(hint => hint.queueIds)
    for (const made of consumers) made.hint(queueIds)
  }

  function checkOpen() {
    if (closed) throw new PmqClientError('closed', 'The client is closed.')
  }

  async function closeAll(how: CloseOptions | undefined) {
    // Consumers first: what their last handler calls publish still goes out.
    await Promise.all([...consumers].map(made => made.stop()))
    await Promise.all([...producers].map(made => made.close(how)))
    closeTransport()
  }

  function close(how?: CloseOptions): Promise<void> {
    closed ??= closeAll(how)
    return closed
  }

  const { publish, publishAsync } = addProducer({})
  return { publish, publishAsync, producer, consumer, notified, close, [Symbol.asyncDispose]: () => close() }
}

/** A transport to each of the servers, and a choice among them where there are several. */
function connect(options: typeof clientDefaults): HttpTransport {
  const urls = typeof options.url === 'string' ? [options.url] : options.url
  const servers = urls.map(url => createHttpTransport({ ...options, url }))
  const [only] = servers
  return only && servers.length === 1 ? only : createFailover(servers, options.random)
}
