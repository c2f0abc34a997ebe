/** Something that may be handed out from `dueAtMs` on. Of two due at the same time the one of the lower offset is first. */
export type Waiting = { dueAtMs: number; readonly message: { readonly offset: number } }

/** Keeps messages until they are due. They hold no slot there, and come out in the order of their times. */
export type WaitingRoom<Item extends Waiting> = {
  add(item: Item): void
  /** Takes the first one, if it is due. */
  takeDue(nowMs: number): Item | undefined
  /** Asks for all times anew. */
  retime(dueAtMsOf: (item: Item) => number): void
  clear(): void
  readonly size: number
  /** When the first one is due; undefined if there is none. */
  readonly nextDueAtMs: number | undefined
}

/** A binary heap. Most delays are the same for all, and then an addition costs one comparison. */
export function createWaitingRoom<Item extends Waiting>(): WaitingRoom<Item> {
  // Each item is not after those at 2i + 1 and 2i + 2.
  let heap: Item[] = []

  function isBefore(a: number, b: number): boolean {
    const first = heap[a] as Item
    const second = heap[b] as Item
    if (first.dueAtMs !== second.dueAtMs) return first.dueAtMs < second.dueAtMs
    return first.message.offset < second.message.offset
  }

  function swap(a: number, b: number) {
    const item = heap[a] as Item
    heap[a] = heap[b] as Item
    heap[b] = item
  }

  function rise(from: number) {
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!isBefore(at, parent)) return
      swap(at, parent)
      at = parent
    }
  }

  function sink() {
    for (let at = 0; ; ) {
      const left = 2 * at + 1
      if (left >= heap.length) return
      const child = left + 1 < heap.length && isBefore(left + 1, left) ? left + 1 : left
      if (!isBefore(child, at)) return
      swap(at, child)
      at = child
    }
  }

  function add(item: Item) {
    heap.push(item)
    rise(heap.length - 1)
  }

  return {
    add,
    takeDue(nowMs) {
      const [first] = heap
      if (!first || first.dueAtMs > nowMs) return undefined
      swap(0, heap.length - 1)
      heap.pop()
      sink()
      return first
    },
    retime(dueAtMsOf) {
      const items = heap
      heap = []
      for (const item of items) {
        item.dueAtMs = dueAtMsOf(item)
        add(item)
      }
    },
    clear() {
      heap = []
    },
    get size() {
      return heap.length
    },
    get nextDueAtMs() {
      return heap[0]?.dueAtMs
    },
  }
}
