import type { Message } from '../message.ts'
import { sizeOf } from './gauge.ts'
import type { Span } from './offset-tracker.ts'

/** Messages that were handed out one by one, and are not done. */
export type HandOuts = {
  add(message: Message, span: Span): void
  /** Removes a message: its span, or undefined if it is not there any more. */
  remove(offset: number): Span | undefined
  get(offset: number): Message | undefined
  /** Those of them that are not above `offset`. */
  upTo(offset: number): Message[]
  clear(): void
  readonly size: number
  readonly bytes: number
  /** The highest offset that was ever handed out, or 0. */
  readonly highestOffset: number
}

/** Makes a list of nothing. */
export function createHandOuts(): HandOuts {
  const open = new Map<number, { message: Message; span: Span }>()
  let bytes = 0
  let highestOffset = 0
  return {
    add(message, span) {
      open.set(message.offset, { message, span })
      bytes += sizeOf(message)
      highestOffset = Math.max(highestOffset, message.offset)
    },
    remove(offset) {
      const found = open.get(offset)
      if (!found) return undefined
      open.delete(offset)
      bytes -= sizeOf(found.message)
      return found.span
    },
    get: offset => open.get(offset)?.message,
    upTo: offset => [...open.values()].map(({ message }) => message).filter(message => message.offset <= offset),
    clear() {
      open.clear()
      bytes = 0
    },
    get size() {
      return open.size
    },
    get bytes() {
      return bytes
    },
    get highestOffset() {
      return highestOffset
    },
  }
}
