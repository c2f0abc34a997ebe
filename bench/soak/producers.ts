import { type NewMessage, type Producer, PublishError } from 'pmq-sdk'
import type { Program } from './program.ts'

/** Publishes with a producer, and records what became of each message. Never rejects. */
export async function publish(program: Program, producer: Pick<Producer, 'publish'>, count: number): Promise<void> {
  const { topicName, nextValue } = program
  const messages = Array.from({ length: count }, () => newMessage(nextValue()))
  const [only] = messages
  try {
    const results =
      count === 1 && only ? [await producer.publish(topicName, only)] : await producer.publish(topicName, messages)
    for (const [index, { queueId, offset }] of results.entries()) {
      program.record.producer.stored(messages[index]?.body ?? '', queueId, offset)
    }
  } catch (error) {
    for (const [index, { body }] of messages.entries()) settle(program, body, error, index)
  }
}

function settle({ record: { producer }, onDefect }: Program, value: string, error: unknown, index: number) {
  if (!(error instanceof PublishError)) return onDefect(`publish threw ${error}`)
  const outcome = error.results ? error.results[index] : error
  if (!(outcome instanceof PublishError)) producer.stored(value, outcome?.queueId ?? 0, outcome?.offset ?? 0)
  else if (outcome.outcome === 'not_stored') producer.notStored(value)
  else producer.neverKnown(value)
}

const keys = 32

function newMessage(body: string): NewMessage {
  const key = Math.random() < 0.5 ? `key-${Math.floor(Math.random() * keys)}` : undefined
  return { body, key, head: { sentBy: 'the soak' } }
}
