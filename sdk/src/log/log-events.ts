import type { ClientEvent, EventListener, TracedMessage } from '../events.ts'
import { type Check, invalidOption, isObject, oneOf, resolveOptions } from '../options.ts'
import { ignoreRejection } from '../thenable.ts'

/** A log's level, or `off` for what is not logged. */
export type EventLogLevel = 'debug' | 'info' | 'warn' | 'error' | 'off'

/** What takes the lines: a logger such as pino, or one that is called like it. */
export type EventLogger = Record<Exclude<EventLogLevel, 'off'>, (fields: Record<string, unknown>, text: string) => void>

/** How events are logged. */
export type LogEventsOptions = {
  /** The level of some types of events, in place of the usual one. @default those of the table in the README */
  levels?: Readonly<Partial<Record<ClientEvent['type'], EventLogLevel>>> | undefined
}

/** The one place that says how each event is logged. */
const lines: Record<ClientEvent['type'], [EventLogLevel, string]> = {
  request_failed: ['warn', 'a request failed'],
  publish_failed: ['error', 'messages that were handed over are not stored, or may be'],
  callback_failed: ['error', 'a function that was passed to a call failed'],
  registered: ['info', 'the consumer is a member of its group'],
  expired: ['warn', 'the service gave the consumer up for its silence'],
  replaced: ['error', 'another consumer has the place of this one, which stops'],
  not_subscribed: ['warn', 'the group does not subscribe to a topic that has a handler'],
  settings_differ: ['warn', 'the consumer did not work with what the service says'],
  deregistered: ['info', 'the consumer has left its group'],
  assigned: ['info', 'a queue was assigned'],
  careful: ['warn', 'owners of a queue were lost, and its messages are handed out one at a time'],
  revoking: ['debug', 'a queue is to be given up'],
  revoked: ['info', 'a queue was given up'],
  kept: ['info', 'a queue waits for the next consumer of this instanceId'],
  removed: ['info', 'a queue is no longer of the group'],
  fenced: ['warn', 'a queue has another owner'],
  reset: ['info', 'the offset of a queue was set'],
  skipped: ['warn', 'messages were past retention'],
  handler_failed: ['error', 'a handler call failed'],
  handler_postponed: ['warn', 'a handler call has not begun'],
  failures_stored: ['info', 'failed messages are in the fail topic'],
  handler_slow: ['warn', 'a handler call takes long'],
  listener_failed: ['error', 'a listener of the consumer failed'],
  trace: ['debug', 'messages came a step further'],
  no_handler: ['warn', 'a queue was assigned whose topic has no handler'],
}

type FieldOf<Event> = Event extends unknown ? Exclude<keyof Event, 'type'> : never

/**
 * What becomes of each field: names and numbers are told; of an error only what it is, since its text may quote a message;
 * of messages where they are and which ids they have.
 */
const fields: Record<FieldOf<ClientEvent>, 'told' | 'error' | 'messages'> = {
  operation: 'told',
  groupName: 'told',
  topicName: 'told',
  queueId: 'told',
  consumerId: 'told',
  consumerName: 'told',
  instanceId: 'told',
  offset: 'told',
  offsetVersion: 'told',
  firstOffset: 'told',
  lastOffset: 'told',
  count: 'told',
  failures: 'told',
  deaths: 'told',
  suspectOffset: 'told',
  retryInMs: 'told',
  callback: 'told',
  failTopicName: 'told',
  failedOffsets: 'told',
  offsets: 'told',
  deadOffsets: 'told',
  runningMs: 'told',
  listener: 'told',
  step: 'told',
  names: 'told',
  timeoutMs: 'told',
  messages: 'messages',
  error: 'error',
}

const checks: Record<keyof LogEventsOptions, Check> = { levels: isObject }
const isLevel = oneOf('debug', 'info', 'warn', 'error', 'off')

/**
 * Makes a listener that writes each event to a log: `event` and the names and numbers of the event as fields, and a
 * sentence. Bodies, keys, heads and tokens are never logged, nor is the text of an error, which may quote one: errors are
 * `{ name, code }`.
 *
 * ```ts
 * const client = createClient({ url, onEvent: logEvents(pino()) })
 * ```
 *
 * Throws a `PmqClientError` with code `invalid_options` for options that cannot be.
 */
export function logEvents(logger: EventLogger, options: LogEventsOptions = {}): EventListener {
  const { levels } = resolveOptions(
    'logEvents',
    options,
    { levels: {} as NonNullable<LogEventsOptions['levels']> },
    checks,
  )
  for (const [type, level] of Object.entries(levels)) {
    const accepted = Object.hasOwn(lines, type) ? isLevel(level) : `a type of event: ${Object.keys(lines).join(', ')}`
    if (accepted) throw invalidOption(`logEvents: levels has "${type}": "${level}"; it must be ${accepted}`)
  }
  return event => {
    const [usual, text] = lines[event.type]
    const level = levels[event.type] ?? usual
    if (level === 'off') return
    const returned: unknown = logger[level]({ event: event.type, ...fieldsOf(event) }, `pmq-sdk: ${text}`)
    // Of a logger that writes by promises: there is nowhere to log that nothing can be logged.
    void ignoreRejection(returned)
  }
}

function fieldsOf(event: ClientEvent): Record<string, unknown> {
  const told: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(event)) {
    const kind = Object.hasOwn(fields, name) ? fields[name as keyof typeof fields] : undefined
    if (kind === 'told' && isPlain(value)) told[name] = value
    else if (kind === 'error') told[name] = describeError(value)
    else if (kind === 'messages') told[name] = Array.isArray(value) ? value.map(nameMessage) : value
  }
  return told
}

/** Whatever the field: an object could be a message. */
function isPlain(value: unknown): boolean {
  return Array.isArray(value) ? value.every(Number.isFinite) : typeof value !== 'object'
}

function nameMessage({ offset, traceId, bizId }: TracedMessage): TracedMessage {
  return { offset, traceId, bizId }
}

const maxWordLength = 100

function describeError(error: unknown): { name: string; code?: string | number } {
  if (!(error instanceof Error)) return { name: typeof error }
  const name = String(error.name).slice(0, maxWordLength)
  const { code } = error as { code?: unknown }
  if (typeof code === 'number') return { name, code }
  return typeof code === 'string' ? { name, code: code.slice(0, maxWordLength) } : { name }
}
