import type { Clock } from '../../../core/protocol/clock.ts'
import type { AssignedQueue } from '../../../core/protocol/membership.ts'
import type { Message } from '../message.ts'
import { createAlarm } from './alarm.ts'
import type { Buffer } from './buffer.ts'
import { delayMsOf } from './delay.ts'
import { callSizeOf, type Gauge, sizeOf } from './gauge.ts'
import type { HandOuts } from './hand-outs.ts'
import { createKeyLanes } from './key-lanes.ts'
import type { OffsetTracker, Span } from './offset-tracker.ts'
import { type Selection, selectionOf } from './selection.ts'
import { createWaitingRoom } from './waiting-room.ts'

/** What taking messages for the handler is made of. */
export type IntakeDeps = {
  buffer: Buffer
  gauge: Gauge
  tracker: OffsetTracker
  handOuts: HandOuts
  clock: Clock
  /** Says no to messages that the application does not want. */
  filter: ((message: Message) => boolean) | undefined
  isKeyed: boolean
  isManual: boolean
  /** How far messages are looked at, or handed out, behind one that is not done. */
  maxMessages: number
  maxBytes: number
  /** What the texts of one call may come to; undefined: anything. */
  maxCallBytes: number | undefined
  /** Messages have left the buffer. */
  onTaken(): void
  /** More may be committed than before. */
  onProgress(): void
  /** There may be more to take than `take` has given. */
  onReady(): void
}

/** Takes messages out of the buffer for the handler: those that are for it, when they are due, by key one at a time. */
export type Intake = {
  /** Up to `max` messages that may be handled now; undefined if there is none. */
  take(max: number): Taken | undefined
  /** The handler is done with these of what `take` gave. */
  finished(messages: readonly Message[], mark: Span | undefined): void
  /** Applies changed settings, also to what waits. */
  update(queue: AssignedQueue): void
  /**
   * The queue is given up in order: only messages can be taken that wait for their key before others that were handed out.
   * Without them those would be handed out again, to the next owner.
   */
  finishUp(): void
  /** Forgets what waits. Nothing can be taken any more. */
  close(): void
  /** How many wait until they are due, and when the first one is, by the monotonic clock. */
  readonly delayed: number
  readonly nextDueAtMs: number | undefined
  /** How many wait for another one of their key. */
  readonly behindKeys: number
}

/** Messages for one call. `mark` has all of them in hand; without one, each is in the list of what was handed out. */
export type Taken = { messages: Message[]; mark: Span | undefined }

type Item = { readonly message: Message; readonly span: Span; readonly appendedAtMs: number; dueAtMs: number }

/** After so many messages in one go other work of the process gets its turn: a filter may pass over all of them. */
const maxPerTurn = 500

/**
 * Where the settings select nothing, delay nothing and follow no key, messages go from the buffer to the handler as they
 * are, with one span for a call. Otherwise each has a span of its own from when it leaves the buffer: it may then be
 * passed over, wait until it is due, or wait for its key, while others go first. How far that looks ahead is bounded by
 * what may be in hand behind an unfinished message.
 */
export function createIntake(deps: IntakeDeps, assigned: AssignedQueue): Intake {
  const { buffer, gauge, tracker, handOuts, clock, filter } = deps
  const room = createWaitingRoom<Item>()
  const lanes = createKeyLanes<Item>()
  const alarm = createAlarm(clock, () => deps.onReady())
  let queue = assigned
  let selection: Selection | undefined
  let isPlain = false
  let isClosed = false
  /** Messages behind this one were not handed out. Undefined: the queue is not given up. */
  let lastHandedOut: number | undefined
  /** What the texts of the call come to that is being taken. */
  let callBytes = 0

  function takeRun(max: number): Taken | undefined {
    if (tracker.uncommittable >= deps.maxMessages) return undefined
    const messages = buffer.take(max, deps.maxCallBytes)
    const last = messages.at(-1)
    if (!last) return undefined
    deps.onTaken()
    return { messages, mark: tracker.started(last.offset, messages.length) }
  }

  function takeEach(max: number): Taken | undefined {
    const nowMs = clock.monotonic()
    const before = tracker.committable
    let left = maxPerTurn
    // All that is known competes for being the first one due.
    if (queue.delayProcessTime > 0) while (left > 0 && admit(nowMs, false)) left--
    const messages: Message[] = []
    callBytes = 0
    while (messages.length < max && hasRoom() && left-- > 0) {
      if (deps.isManual && handOuts.bytes >= deps.maxBytes) break
      const item = lanes.next()
      if (item) give(unpark(item), messages)
      else {
        const due = room.takeDue(nowMs)
        if (due) pass(due)
        else if (!admit(nowMs, true)) break
      }
    }
    if (left <= 0) deps.onReady()
    if (tracker.committable > before) deps.onProgress()
    const { nextDueAtMs } = room
    if (nextDueAtMs !== undefined && nextDueAtMs > nowMs) alarm.set(nextDueAtMs)
    return messages.length > 0 ? { messages, mark: undefined } : undefined

    function pass(item: Item) {
      unpark(item)
      if (deps.isKeyed && !lanes.enter(item)) park(item)
      else give(item, messages)
    }

    /** Looks at the next message of the buffer. False: there is none, or it is too far ahead. */
    function admit(atMs: number, isWanted: boolean): boolean {
      const appendedAtMs = buffer.nextAppendedAtMs
      if (appendedAtMs === undefined || tracker.uncommittable >= deps.maxMessages) return false
      const [message] = buffer.take(1)
      if (!message) return false
      deps.onTaken()
      const span = tracker.started(message.offset, 1)
      if ((selection && !selection(message)) || (filter && !filter(message))) {
        tracker.finished(span, 1)
        return true
      }
      const dueAtMs = appendedAtMs + delayMsOf(queue, message.retryCount)
      const item = { message, span, appendedAtMs, dueAtMs }
      if (isWanted && dueAtMs <= atMs) {
        if (!deps.isKeyed || lanes.enter(item)) give(item, messages)
        else park(item)
      } else {
        room.add(item)
        park(item)
      }
      return true
    }
  }

  function takeLeft(max: number, upTo: number): Taken | undefined {
    const messages: Message[] = []
    callBytes = 0
    while (messages.length < max && hasRoom()) {
      const item = lanes.next()
      if (!item) break
      // One further behind leaves its key taken: nobody of that key is to pass it.
      if (item.message.offset <= upTo) give(unpark(item), messages)
    }
    return messages.length > 0 ? { messages, mark: undefined } : undefined
  }

  function give({ message, span }: Item, messages: Message[]) {
    // The settings may have changed while it waited.
    if (selection && !selection(message)) {
      tracker.finished(span, 1)
      lanes.release(message.key)
      return
    }
    handOuts.add(message, span)
    messages.push(message)
    if (deps.maxCallBytes !== undefined) callBytes += callSizeOf(message)
  }

  function hasRoom(): boolean {
    return deps.maxCallBytes === undefined || callBytes < deps.maxCallBytes
  }

  function park({ message }: Item) {
    gauge.add(1, sizeOf(message))
  }

  function unpark(item: Item): Item {
    gauge.remove(1, sizeOf(item.message))
    deps.onTaken()
    return item
  }

  return {
    take(max) {
      if (isClosed) return undefined
      if (lastHandedOut !== undefined) return takeLeft(max, lastHandedOut)
      return isPlain && room.size === 0 && lanes.size === 0 ? takeRun(max) : takeEach(max)
    },
    finished(messages, mark) {
      let hasMoved = mark !== undefined && tracker.finished(mark, messages.length)
      if (!mark) {
        for (const { offset, key } of messages) {
          lanes.release(key)
          const own = deps.isManual ? undefined : handOuts.remove(offset)
          if (own && tracker.finished(own, 1)) hasMoved = true
        }
      }
      if (hasMoved) deps.onProgress()
    },
    update(changed) {
      queue = changed
      selection = selectionOf(queue)
      isPlain = !selection && !filter && !deps.isKeyed && !deps.isManual && queue.delayProcessTime === 0
      room.retime(({ message, appendedAtMs }) => appendedAtMs + delayMsOf(queue, message.retryCount))
    },
    finishUp() {
      lastHandedOut = handOuts.highestOffset
    },
    close() {
      isClosed = true
      alarm.close()
      room.clear()
      lanes.clear()
    },
    get delayed() {
      return room.size
    },
    get nextDueAtMs() {
      return room.nextDueAtMs
    },
    get behindKeys() {
      return lanes.size
    },
  }
}
