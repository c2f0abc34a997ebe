import { PmqClientError } from './errors.ts'
import type { ClientEvent, EventListener } from './events.ts'

/**
 * What listens where nobody else does: a warning of the process for each kind of trouble, once. Without it a client whose
 * server is away, or whose handler always throws, would be silent for ever. No text of messages, nor of a handler's error,
 * which may quote one.
 */
export function createWarner(warn: (text: string) => void = emitWarning): EventListener {
  const warned = new Set<string>()
  return event => {
    const text = describe(event)
    if (text === undefined || warned.has(text)) return
    warned.add(text)
    warn(`${text}. Further cases are not reported; give onEvent to hear of all.`)
  }
}

const emitWarning = (text: string) => process.emitWarning(text, 'PmqWarning')

function describe(event: ClientEvent): string | undefined {
  switch (event.type) {
    case 'request_failed':
      return `pmq-sdk: ${event.operation} failed (${event.error.code})${event.retryInMs === undefined ? '' : '; it goes on trying'}`
    case 'publish_failed':
      return `pmq-sdk: a publish to ${event.topicName} was lost (${event.error.code}), and nobody was told`
    case 'callback_failed':
      return `pmq-sdk: the ${event.callback} of a publish to ${event.topicName} failed (${nameOf(event.error)})`
    case 'settings_differ':
      return `pmq-sdk: a consumer of ${event.groupName} had missed a change (${event.names.join(', ')}), and has caught up`
    case 'careful':
      return `pmq-sdk: consumers of ${event.groupName} were lost while they worked on ${event.topicName}, perhaps by a message; for a while each is handed out alone`
    case 'handler_failed':
      return `pmq-sdk: the handler of ${event.topicName} ${howFailed(event.error)}; ${afterwards(event)}`
    case 'handler_postponed':
      return `pmq-sdk: the handler of ${event.topicName} has not begun with its messages; it is called again`
    case 'failures_stored':
      if (event.deadOffsets.length === 0) return undefined
      return `pmq-sdk: messages of ${event.topicName} have failed as often as they may, and are kept in ${event.failTopicName}`
    case 'handler_slow':
      return `pmq-sdk: a handler call of ${event.topicName} takes long`
    case 'listener_failed':
      return `pmq-sdk: the listener ${event.listener} failed (${nameOf(event.error)})`
    case 'no_handler':
      return `pmq-sdk: group ${event.groupName} has messages of ${event.topicName}, which has no handler here`
    case 'not_subscribed':
      return `pmq-sdk: group ${event.groupName} does not subscribe to ${event.topicName}, which has a handler here`
    case 'replaced':
      return `pmq-sdk: another consumer of ${event.groupName} has the instanceId ${event.instanceId}; this one has stopped`
    case 'expired':
      return `pmq-sdk: the service gave this consumer of ${event.groupName} up, since it heard no heartbeat in time`
    default:
      return undefined
  }
}

const afterwards = ({ failTopicName }: { failTopicName?: string }) =>
  failTopicName ? `its messages go to ${failTopicName}` : 'it is called again'

function nameOf(error: unknown): string {
  if (error instanceof PmqClientError) return error.code
  return error instanceof Error ? error.name : typeof error
}

/** It has no error where the handler itself has named what failed. */
const howFailed = (error: unknown) =>
  error === undefined ? 'said that messages have failed' : `failed (${nameOf(error)})`
