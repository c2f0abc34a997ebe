import { createClient, type NewMessage, PublishError, type PublishResult } from '../../../sdk/src/index.ts'
import type { ProducerOptions } from '../../../sdk/src/producer-options.ts'
import type { Dice } from '../world/dice.ts'
import { connect, type Network, type NetworkDeps } from '../world/network.ts'
import type { SimProcess } from '../world/process.ts'
import { tagOf } from './fates.ts'
import { type Recorder, recordProducer } from './recorder.ts'

/** The messages of each topic and key in the order in which they were given to the SDK, and what it said of each. */
export type KeyOrder = Map<string, { value: string; place?: PublishResult }[]>

/** A client of the SDK that publishes, of which all is recorded: what it sends, and what its caller is told. */
export type Sender = {
  network: Network
  keyOrder: KeyOrder
  /** Never rejects. The messages' bodies have to be unique. */
  publish(topicName: string, messages: readonly [NewMessage, ...NewMessage[]]): Promise<void>
  close(): Promise<void>
}

export function createSender(
  recorder: Recorder,
  deps: NetworkDeps,
  process: SimProcess,
  dice: Dice,
  options: ProducerOptions,
): Sender {
  const network = connect({ ...deps, dice: dice.fork() }, process)
  const record = recordProducer(recorder, process.name, network.transport)
  const { transport, onEvent } = record
  const client = createClient({ transport, onEvent, clock: process.clock, random: dice.fork().random })
  const producer = client.producer(options)
  const keyOrder: KeyOrder = new Map()

  async function publish(topicName: string, untagged: readonly [NewMessage, ...NewMessage[]]) {
    const messages = untagged.map(withTag) as [NewMessage, ...NewMessage[]]
    const settles = messages.map(message => note(topicName, message))
    try {
      const [first, ...others] = messages
      const results =
        others.length === 0 ? [await producer.publish(topicName, first)] : await producer.publish(topicName, messages)
      for (const [index, settle] of settles.entries()) settle(results[index])
    } catch (error) {
      for (const [index, settle] of settles.entries()) settle(outcomeOf(error, index))
    }
  }

  const withTag = (message: NewMessage) => (recorder.isTagged ? { ...message, tag: tagOf(message.body) } : message)

  /** Remembers in which order messages of a key were given; returns what takes note of what became of this one. */
  function note(topicName: string, { body: value, key }: NewMessage) {
    const entry: { value: string; place?: PublishResult } = { value }
    if (key !== undefined) keyOrder.set(`${topicName}/${key}`, [...(keyOrder.get(`${topicName}/${key}`) ?? []), entry])
    return (outcome: PublishResult | PublishError | undefined) => {
      if (outcome instanceof PublishError) {
        if (outcome.outcome === 'not_stored') record.notStored(value)
      } else if (outcome) {
        entry.place = outcome
        record.stored(value, outcome.queueId, outcome.offset)
      } else recorder.onDefect(`${process.name} was told nothing of "${value}"`)
    }
  }

  return { network, keyOrder, publish, close: client.close }
}

/** A publish of one message has its error, one of several an error for each. */
function outcomeOf(error: unknown, index: number): PublishResult | PublishError | undefined {
  if (!(error instanceof PublishError)) return undefined
  return error.results ? error.results[index] : error
}
