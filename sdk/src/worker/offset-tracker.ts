import { createFifo } from '../fifo.ts'

/** Messages that were handed out together, named by the last of their offsets. */
export type Span = { readonly lastOffset: number; isFinished: boolean }

/** Knows how far a queue may be committed. */
export type OffsetTracker = {
  /** Notes that the messages up to `lastOffset` are handed out. Spans must start in offset order. */
  started(lastOffset: number): Span
  /** Notes that a span is done. True if more may be committed now than before. */
  finished(span: Span): boolean
  /** The last offset before which nothing is unfinished. */
  readonly committable: number
  /** How many offsets lie between `committable` and the last one handed out. */
  readonly uncommittable: number
}

/**
 * Spans finish in any order; the committable offset moves over those at the front that are finished. What is finished
 * behind an unfinished span is kept as one mark per span, so its size is bounded by what may be handed out.
 */
export function createOffsetTracker(committedOffset: number): OffsetTracker {
  const open = createFifo<Span>()
  let committable = committedOffset
  let startedOffset = committedOffset
  return {
    started(lastOffset) {
      const span = { lastOffset, isFinished: false }
      open.push(span)
      startedOffset = lastOffset
      return span
    },
    finished(span) {
      span.isFinished = true
      const before = committable
      for (let first = open.peek(); first?.isFinished; first = open.peek()) {
        committable = first.lastOffset
        open.shift()
      }
      return committable > before
    },
    get committable() {
      return committable
    },
    get uncommittable() {
      return startedOffset - committable
    },
  }
}
