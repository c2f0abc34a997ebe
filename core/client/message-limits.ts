import { limits } from '../protocol/limits.ts'
import type { PublishMessage } from '../protocol/publish.ts'

const maxLengths = {
  tag: limits.maxTagLength,
  bizId: limits.maxBizIdLength,
  traceId: limits.maxTraceIdLength,
  key: limits.maxKeyLength,
}
const shortTexts = Object.entries(maxLengths) as [keyof typeof maxLengths, number][]

/** Why the messages of one publish cannot be taken; undefined: they can. */
export const refuseMessages = (messages: readonly PublishMessage[]): string | undefined =>
  refuseAny(messages, refuseMessage)

/** The same of failures: their heads have grown since they were published. */
export const refuseFailures = (messages: readonly PublishMessage[]): string | undefined =>
  refuseAny(messages, refuseBody)

function refuseAny(
  messages: readonly PublishMessage[],
  refuse: (message: PublishMessage) => string | undefined,
): string | undefined {
  if (messages.length > limits.maxMessagesPerPublish) {
    return `a publish of ${messages.length} messages; at most ${limits.maxMessagesPerPublish} are accepted`
  }
  for (const [index, message] of messages.entries()) {
    const why = refuse(message)
    if (why !== undefined) return `message ${index}: ${why}`
  }
  return undefined
}

/** Why a message cannot be taken; undefined: it can. */
function refuseMessage(message: PublishMessage): string | undefined {
  for (const [field, most] of shortTexts) {
    const length = message[field]?.length ?? 0
    if (length > most) return `its ${field} has ${length} characters; at most ${most} are accepted`
  }
  const tooLong = refuseBody(message)
  if (tooLong !== undefined) return tooLong
  if (!message.head) return undefined
  const keys = Object.keys(message.head).length
  if (keys > limits.maxHeadKeys) return `its head has ${keys} entries; at most ${limits.maxHeadKeys} are accepted`
  const bytes = Buffer.byteLength(JSON.stringify(message.head))
  if (bytes > limits.maxHeadBytes) return `its head has ${bytes} bytes; at most ${limits.maxHeadBytes} are accepted`
  return undefined
}

/** Why the body of a message cannot be taken; undefined: it can. */
function refuseBody(message: PublishMessage): string | undefined {
  // A UTF-16 unit is at most three bytes: only long bodies need to be measured.
  if (message.body.length * 3 > limits.maxBodyBytes) {
    const bytes = Buffer.byteLength(message.body)
    if (bytes > limits.maxBodyBytes) return `its body has ${bytes} bytes; at most ${limits.maxBodyBytes} are accepted`
  }
  return undefined
}
