import { createFifo } from '../fifo.ts'

/** Messages that were handed out together, named by the last of their offsets. `open`: how many are not done. */
export type Span = { readonly lastOffset: number; open: number }

/** Knows how far a queue may be committed. */
export type OffsetTracker = {
  /** Notes that `count` messages, the last of them at `lastOffset`, are in hand. Spans must start in offset order. */
  started(lastOffset: number, count: number): Span
  /** Notes that so many messages of a span are done. True if more may be committed now than before. */
  finished(span: Span, count: number): boolean
  /** The last offset before which nothing is unfinished. */
  readonly committable: number
  /** How many offsets lie between `committable` and the last one in hand. */
  readonly uncommittable: number
}

/**
 * Spans finish in any order; the committable offset moves over those at the front that are finished. What is finished
 * behind an unfinished span is kept as one mark per span, so its size is bounded by what may be in hand.
 */
export function createOffsetTracker(committedOffset: number): OffsetTracker {
  const spans = createFifo<Span>()
  let committable = committedOffset
  let startedOffset = committedOffset
  return {
    started(lastOffset, count) {
      const span = { lastOffset, open: count }
      spans.push(span)
      startedOffset = lastOffset
      return span
    },
    finished(span, count) {
      span.open -= count
      const before = committable
      for (let first = spans.peek(); first?.open === 0; first = spans.peek()) {
        committable = first.lastOffset
        spans.shift()
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
