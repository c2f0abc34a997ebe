import { createFifo } from '../fifo.ts'

/**
 * Bounds what a producer holds: calls enter with their messages and bytes, and leave when they are settled. Whoever
 * finds no room may wait; those who wait enter in the order in which they came, and nobody passes them.
 */
export type Admission = {
  /** True if the call has entered. */
  enter(messages: number, bytes: number): boolean
  /** Calls `onEntered` as soon as there is room. */
  wait(messages: number, bytes: number, onEntered: () => void): void
  leave(messages: number, bytes: number): void
  readonly messages: number
  readonly bytes: number
}

type Waiting = { messages: number; bytes: number; onEntered: () => void }

/** Makes an admission that nobody has entered. */
export function createAdmission(limits: { maxMessages: number; maxBytes: number }): Admission {
  const waiting = createFifo<Waiting>()
  let heldMessages = 0
  let heldBytes = 0

  const hasRoom = (messages: number, bytes: number) =>
    heldMessages + messages <= limits.maxMessages && heldBytes + bytes <= limits.maxBytes

  function take(messages: number, bytes: number) {
    heldMessages += messages
    heldBytes += bytes
  }

  return {
    enter(messages, bytes) {
      if (waiting.length > 0 || !hasRoom(messages, bytes)) return false
      take(messages, bytes)
      return true
    },
    wait(messages, bytes, onEntered) {
      waiting.push({ messages, bytes, onEntered })
    },
    leave(messages, bytes) {
      take(-messages, -bytes)
      for (let next = waiting.peek(); next && hasRoom(next.messages, next.bytes); next = waiting.peek()) {
        waiting.shift()
        take(next.messages, next.bytes)
        next.onEntered()
      }
    },
    get messages() {
      return heldMessages
    },
    get bytes() {
      return heldBytes
    },
  }
}
