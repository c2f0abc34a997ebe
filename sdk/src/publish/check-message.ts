import { limits } from '../../../core/protocol/limits.ts'
import type { PublishMessage } from '../../../core/protocol/publish.ts'
import { PublishError } from '../errors.ts'
import type { NewMessage } from '../message.ts'

/** What a message weighs besides its texts: names, quotes and commas of its JSON, and the objects that hold it. */
const overheadBytes = 64

/**
 * Checks a message against the limits of the service and copies it, so that what the caller does to it later changes
 * nothing. Throws a `PublishError` that names the limit, the value, and what would be accepted.
 */
export function checkMessage(message: NewMessage, index?: number): PublishMessage {
  const name = index === undefined ? 'message' : `message ${index}`
  if (typeof message !== 'object' || message === null)
    throw refusal(`${name} is ${kind(message)}; it must be an object`)
  for (const field in message) {
    if (!knownFields.has(field))
      throw refusal(`${name} has an unknown field "${field}"; there are ${[...knownFields].join(', ')}`)
  }
  const { body, key, tag, bizId, head, traceId } = message
  if (typeof body !== 'string') throw refusal(`${name}: body is ${kind(body)}; it must be a string`)
  // A UTF-16 unit becomes three bytes at most, so most bodies need no counting.
  if (body.length > limits.maxBodyBytes / 3) {
    const bytes = Buffer.byteLength(body)
    if (bytes > limits.maxBodyBytes)
      throw refusal(`${name}: body has ${bytes} bytes as UTF-8; at most ${limits.maxBodyBytes} are accepted`)
  }
  checkText(name, 'key', key, limits.maxKeyLength)
  if (key === '') throw refusal(`${name}: key is empty; leave it out, or give 1 to ${limits.maxKeyLength} characters`)
  checkText(name, 'tag', tag, limits.maxTagLength)
  checkText(name, 'bizId', bizId, limits.maxBizIdLength)
  checkText(name, 'traceId', traceId, limits.maxTraceIdLength)
  return { tag, bizId, head: head && checkHead(name, head), body, traceId, key }
}

/** What a checked message takes of a batch and of memory, in bytes of UTF-8; near enough to bound both. */
export function messageBytes({ body, key, tag, bizId, head, traceId }: PublishMessage): number {
  let bytes = overheadBytes + Buffer.byteLength(body)
  for (const text of [key, tag, bizId, traceId]) if (text) bytes += text.length
  if (head) bytes += Buffer.byteLength(JSON.stringify(head))
  return bytes
}

const knownFields = new Set([
  'body',
  'key',
  'tag',
  'bizId',
  'head',
  'traceId',
] satisfies (keyof NewMessage)[] as string[])

function checkText(name: string, field: string, text: string | undefined, maxLength: number) {
  if (text === undefined) return
  if (typeof text !== 'string') throw refusal(`${name}: ${field} is ${kind(text)}; it must be a string`)
  if (text.length > maxLength)
    throw refusal(`${name}: ${field} has ${text.length} characters; at most ${maxLength} are accepted`)
}

function checkHead(name: string, head: Readonly<Record<string, string>>): Record<string, string> {
  if (typeof head !== 'object' || Array.isArray(head))
    throw refusal(`${name}: head is ${kind(head)}; it must be an object of strings`)
  const copy = { ...head }
  const keys = Object.keys(copy)
  if (keys.length > limits.maxHeadKeys)
    throw refusal(`${name}: head has ${keys.length} entries; at most ${limits.maxHeadKeys} are accepted`)
  for (const key of keys) {
    if (typeof copy[key] !== 'string')
      throw refusal(`${name}: head "${key}" is ${kind(copy[key])}; it must be a string`)
  }
  const bytes = Buffer.byteLength(JSON.stringify(copy))
  if (bytes > limits.maxHeadBytes)
    throw refusal(`${name}: head has ${bytes} bytes as JSON; at most ${limits.maxHeadBytes} are accepted`)
  return copy
}

function refusal(text: string): PublishError {
  return new PublishError('invalid_message', text, { outcome: 'not_stored' })
}

function kind(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'an array' : typeof value
}
