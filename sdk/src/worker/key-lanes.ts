import { createFifo, type Fifo } from '../fifo.ts'

type Keyed = { readonly message: { readonly key: string | undefined } }

/** Lets one message of each key through at a time. Messages without a key pass. */
export type KeyLanes<Item extends Keyed> = {
  /** True: it may be handed out, and its key is taken until `release`. False: it waits here behind its key. */
  enter(item: Item): boolean
  /** The message of this key that was handed out is done with. */
  release(key: string | undefined): void
  /** Takes a message that has waited and whose key is free by now; the key is taken again. */
  next(): Item | undefined
  clear(): void
  /** How many wait. */
  readonly size: number
}

/** Makes lanes with all keys free. They are as many as there are messages in hand, whatever the number of keys. */
export function createKeyLanes<Item extends Keyed>(): KeyLanes<Item> {
  /** The keys that are taken, each with those that wait for it, in the order in which they came. */
  const lanes = new Map<string, Fifo<Item> | undefined>()
  const freed = createFifo<string>()
  let size = 0
  return {
    enter(item) {
      const { key } = item.message
      if (key === undefined) return true
      if (!lanes.has(key)) {
        lanes.set(key, undefined)
        return true
      }
      const lane = lanes.get(key) ?? createFifo<Item>()
      lane.push(item)
      lanes.set(key, lane)
      size++
      return false
    },
    release(key) {
      if (key === undefined) return
      // With somebody waiting the key stays taken: who comes later must not pass.
      if (lanes.get(key)?.length) freed.push(key)
      else lanes.delete(key)
    },
    next() {
      const key = freed.shift()
      if (key === undefined) return undefined
      size--
      return lanes.get(key)?.shift()
    },
    clear() {
      lanes.clear()
      freed.clear()
      size = 0
    },
    get size() {
      return size
    },
  }
}
