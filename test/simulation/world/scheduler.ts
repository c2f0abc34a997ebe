import type { Immediates } from './immediates.ts'

/** The one place where virtual time passes. */
export type Scheduler = {
  /** Virtual milliseconds since the beginning. */
  readonly nowMs: number
  /** How many acts have been done. */
  readonly steps: number
  after(ms: number, act: () => void): Timer
  /**
   * Lets time pass until `isOver`. Between two acts everything that can go on without time has gone on, so one seed has
   * one order of things.
   */
  run(isOver: () => boolean): Promise<void>
}

export type Timer = { cancel(): void }

type Entry = { atMs: number; seq: number; act: (() => void) | undefined }

/** A power of two, by which sums of times are exact: nobody is woken a rounding error too early. */
const ticksPerMs = 1024

/** A run that needs more has a loop in it that does not wait. */
const maxSteps = 3_000_000

export function createScheduler(immediates: Immediates): Scheduler {
  const heap = createHeap()
  let nowMs = 0
  let seq = 0
  let steps = 0

  function next(): Entry | undefined {
    for (let entry = heap.pop(); entry; entry = heap.pop()) if (entry.act) return entry
  }

  function run(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      function step() {
        if (immediates.waiting > 0) return immediates.next(step)
        if (isOver()) return resolve()
        const entry = next()
        if (!entry?.act) return reject(new Error('nothing will ever happen again'))
        if (++steps > maxSteps) return reject(new Error(`no end after ${maxSteps} steps, at ${nowMs} ms`))
        nowMs = entry.atMs
        entry.act()
        immediates.next(step)
      }
      immediates.next(step)
    })
  }

  return {
    get nowMs() {
      return nowMs
    },
    get steps() {
      return steps
    },
    after(ms, act) {
      const entry: Entry = { atMs: nowMs + Math.ceil(Math.max(0, ms) * ticksPerMs) / ticksPerMs, seq: seq++, act }
      heap.push(entry)
      return {
        cancel() {
          entry.act = undefined
        },
      }
    },
    run,
  }
}

/** Entries in the order of their times; those of one time in the order in which they came. */
function createHeap() {
  const entries: Entry[] = []
  const isBefore = (a: Entry, b: Entry) => a.atMs < b.atMs || (a.atMs === b.atMs && a.seq < b.seq)

  function swapIfBefore(child: number, parent: number): boolean {
    const a = entries[child]
    const b = entries[parent]
    if (!a || !b || !isBefore(a, b)) return false
    entries[child] = b
    entries[parent] = a
    return true
  }

  return {
    push(entry: Entry) {
      let at = entries.push(entry) - 1
      while (at > 0 && swapIfBefore(at, (at - 1) >> 1)) at = (at - 1) >> 1
    },
    pop(): Entry | undefined {
      const [first] = entries
      const last = entries.pop()
      if (last === undefined || entries.length === 0) return first
      entries[0] = last
      for (let at = 0; ; ) {
        const left = entries[at * 2 + 1]
        const right = entries[at * 2 + 2]
        const child = left && right && isBefore(right, left) ? at * 2 + 2 : at * 2 + 1
        if (!swapIfBefore(child, at)) return first
        at = child
      }
    },
  }
}
