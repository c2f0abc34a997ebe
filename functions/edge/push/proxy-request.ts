import { createHash } from 'node:crypto'
import { formatSendTime } from '../../../core/client/send-time.ts'
import type { Message } from '../../../sdk/src/index.ts'

/** A handler call, as it is handed on. */
export type Call = {
  groupName: string
  /** The topic that the group subscribes to, also for what comes from its fail topic. */
  topicName: string
  queueId: number
  messages: readonly Message[]
}

/**
 * The texts of a call come to at most so much, and the largest message, of characters that are six bytes at most in JSON:
 * `\u0001`. With what else is said of 500 messages that is less than the 6 MB that an invocation takes.
 */
export const maxCallBytes = 512 * 1024

/** PMQ's ProxyRequest, and what there is besides in fields that its clients pass over. */
export function proxyRequest({ groupName, topicName, queueId, messages }: Call, timeZone: string): string {
  return JSON.stringify({
    msgs: messages.map(message => ({
      id: message.offset,
      topicName,
      consumerGroupName: groupName,
      bizId: message.bizId,
      head: message.head,
      body: message.body,
      traceId: message.traceId || `${queueId}-${message.offset}`,
      sendIp: message.sendIp,
      insertTime: formatSendTime(message.publishedAtMs, timeZone),
      ...(message.tag !== '' && { tag: message.tag }),
      ...(message.key !== undefined && { key: message.key }),
      retryCount: message.retryCount,
      queueId,
    })),
  })
}

/**
 * The same for each delivery of these messages from this queue: by it a receiver knows what it has had already, when an
 * answer was lost. Where an operator sets the queue's offset back, it is the same too.
 */
export function deliveryIdOf({ groupName, queueId, messages }: Call): string {
  const named = JSON.stringify([groupName, queueId, messages.map(({ offset }) => offset)])
  return `push_${createHash('sha256').update(named).digest('base64url').slice(0, 24)}`
}
