/** A queue with constant-time `push` and `shift`, which an array has only while it is short. */
export type Fifo<T> = {
  readonly length: number
  push(item: T): void
  /** Takes the oldest item. */
  shift(): T | undefined
  /** The oldest item, left where it is. */
  peek(): T | undefined
  clear(): void
}

/** Spent places are cut off when there are this many of them and they are the greater part. */
const compactAt = 1024

/** Makes an empty queue. */
export function createFifo<T>(): Fifo<T> {
  // Live items are those from `head` on; the places before it hold undefined, so that nothing is kept alive by them.
  let items: (T | undefined)[] = []
  let head = 0
  return {
    get length() {
      return items.length - head
    },
    push(item) {
      items.push(item)
    },
    shift() {
      if (head === items.length) return undefined
      const item = items[head]
      items[head++] = undefined
      if (head === items.length) {
        items.length = 0
        head = 0
      } else if (head >= compactAt && head * 2 > items.length) {
        items = items.slice(head)
        head = 0
      }
      return item
    },
    peek: () => items[head],
    clear() {
      items = []
      head = 0
    },
  }
}
