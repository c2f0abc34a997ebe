import { limits } from '../protocol/limits.ts'
import type { PublishMessage } from '../protocol/publish.ts'

/** Why a message cannot be taken, by the limits that its schema does not state; undefined: it can. */
export function refuseMessage(message: PublishMessage): string | undefined {
  // A UTF-16 unit is at most three bytes: only long bodies need to be measured.
  if (message.body.length * 3 > limits.maxBodyBytes) {
    const bytes = Buffer.byteLength(message.body)
    if (bytes > limits.maxBodyBytes) return `its body has ${bytes} bytes; at most ${limits.maxBodyBytes} are accepted`
  }
  if (!message.head) return undefined
  const keys = Object.keys(message.head).length
  if (keys > limits.maxHeadKeys) return `its head has ${keys} entries; at most ${limits.maxHeadKeys} are accepted`
  const bytes = Buffer.byteLength(JSON.stringify(message.head))
  if (bytes > limits.maxHeadBytes) return `its head has ${bytes} bytes; at most ${limits.maxHeadBytes} are accepted`
  return undefined
}
