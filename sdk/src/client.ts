import { type ClientOptions, resolveClientOptions } from './client-options.ts'
import { createConnection } from './connection.ts'
import { type Consumer, createConsumer } from './consumer.ts'
import type { ConsumerOptions } from './consumer-options.ts'
import { PmqClientError } from './errors.ts'
import type { NotifyHint } from './notify/hints.ts'
import { type CloseOptions, createProducer, type Producer } from './producer.ts'
import type { ProducerOptions } from './producer-options.ts'

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
  const options = resolveClientOptions(given)
  const { preSend } = options.listeners
  const connection = createConnection(options)
  const producers = new Set<Producer>()
  const consumers = new Set<Consumer>()
  let closed: Promise<void> | undefined

  function addProducer(producerOptions: ProducerOptions): Producer {
    const made = createProducer({ ...connection, preSend, onClosed: () => producers.delete(made) }, producerOptions)
    producers.add(made)
    return made
  }

  function producer(producerOptions: ProducerOptions = {}): Producer {
    checkOpen()
    return addProducer(producerOptions)
  }

  function consumer(consumerOptions: ConsumerOptions): Consumer {
    checkOpen()
    // Only those that run are known here: a client may see many come and go.
    const onStarted = () => {
      checkOpen()
      consumers.add(made)
    }
    const onStopped = () => consumers.delete(made)
    const made = createConsumer({ ...connection, onStarted, onStopped }, consumerOptions)
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
    connection.close()
  }

  function close(how?: CloseOptions): Promise<void> {
    closed ??= closeAll(how)
    return closed
  }

  const { publish, publishAsync } = addProducer({})
  return { publish, publishAsync, producer, consumer, notified, close, [Symbol.asyncDispose]: () => close() }
}
