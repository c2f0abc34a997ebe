import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import type { ConsumerOptions } from '../consumer-options.ts'
import { PmqClientError } from '../errors.ts'
import type { MessageHandler } from '../message.ts'
import { type Check, invalidOption, isText, resolveOptions } from '../options.ts'
import { readDeclarations } from './declarations.ts'
import { type Refuse, readRoot } from './elements.ts'
import { type FindHandler, findHandler } from './handlers.ts'

export type { FindHandler } from './handlers.ts'

/** Where handlers are. */
export type LoadSubscriptionsOptions = {
  /**
   * The handlers by the names that `receiverType` gives them, or a function that finds one by its name; undefined where
   * there is none. What is not found here can be a module path, relative to the file: `./handlers.js#ordersHandler`.
   * @default none: all are module paths
   */
  handlers?: Readonly<Record<string, MessageHandler>> | FindHandler | undefined
}

/** A group and its handlers, as `client.consumer` takes them. */
export type Subscription = Pick<ConsumerOptions, 'groupName' | 'topics'>

const checks: Record<keyof LoadSubscriptionsOptions, Check> = {
  handlers: value =>
    typeof value === 'function' || (typeof value === 'object' && value !== null && !Array.isArray(value))
      ? undefined
      : 'an object of functions, or a function',
}

/**
 * Loads subscriptions from PMQ's `messageQueue.xml`, one for each `consumer` of it, in its order. `source` is the path or
 * URL of the file, or the XML itself.
 *
 * ```ts
 * const subscriptions = await loadSubscriptions('messageQueue.xml', { handlers: { OrdersSubscriber: handleOrders } })
 * const consumers = subscriptions.map(subscription => client.consumer(subscription))
 * ```
 *
 * Rejects with a `PmqClientError` of code `invalid_options` that names the file, the line, the value and what would be
 * accepted: for a file that cannot be read or is no XML, an element or attribute that is missing or wrong, a group or topic
 * that is there twice, a handler that is not there.
 */
export async function loadSubscriptions(
  source: string | URL,
  given: LoadSubscriptionsOptions = {},
): Promise<Subscription[]> {
  const { handlers } = resolveOptions(
    'loadSubscriptions',
    given,
    { handlers: {} as NonNullable<typeof given.handlers> },
    checks,
  )
  const { text, name, fileUrl } = await readSource(source)
  const refuse: Refuse = (line, reason, cause) =>
    new PmqClientError('invalid_options', `${name}:${line}: ${reason}`, cause === undefined ? {} : { cause })
  const declarations = readDeclarations(readRoot(text, refuse), refuse)
  const subscriptions: Subscription[] = []
  // In turn, so that of several errors the first in the file is told.
  for (const { groupName, topics } of declarations) {
    const found: [string, MessageHandler][] = []
    for (const { topicName, receiverType, line } of topics) {
      try {
        found.push([topicName, await findHandler(receiverType, handlers, fileUrl)])
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause)
        throw refuse(line, `receiverType of topic "${topicName}" is "${receiverType}": ${reason}`, cause)
      }
    }
    subscriptions.push({ groupName, topics: Object.fromEntries(found) })
  }
  return subscriptions
}

async function readSource(source: string | URL): Promise<{ text: string; name: string; fileUrl: URL | undefined }> {
  if (!(source instanceof URL) && isText(source)) throw invalidOption('loadSubscriptions: give a path, a URL, or XML')
  // Behind white space and a byte order mark; no path begins like that.
  if (typeof source === 'string' && source.trimStart().startsWith('<'))
    return { text: source, name: 'XML', fileUrl: undefined }
  const name = String(source)
  try {
    const text = await readFile(source, 'utf8')
    return { text, name, fileUrl: source instanceof URL ? source : pathToFileURL(source) }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new PmqClientError('invalid_options', `${name}: the file cannot be read: ${reason}`, { cause })
  }
}
