import type { Message } from '../message.ts'

/**
 * Messages for the application, to do with as it likes: JavaScript changes a message as easily as it reads it. What is
 * committed, repeated, brought to the fail topic and measured goes by the originals.
 */
export function copiesOf(messages: readonly Message[]): Message[] {
  return messages.map(copyOf)
}

/** The same of one. */
export function copyOf(message: Message): Message {
  // Field by field: a spread of the whole costs several times as much.
  return {
    topicName: message.topicName,
    queueId: message.queueId,
    offset: message.offset,
    key: message.key,
    tag: message.tag,
    bizId: message.bizId,
    head: { ...message.head },
    body: message.body,
    traceId: message.traceId,
    retryCount: message.retryCount,
    publishedAtMs: message.publishedAtMs,
    sendIp: message.sendIp,
  }
}
