import type { Clock } from '../../../core/protocol/clock.ts'
import { createFifo } from '../fifo.ts'
import type { Part } from './call.ts'

/**
 * A place for one request under way, with the queue that its last request went to. Requests go to the queues in turn;
 * after the service had to choose another queue than the asked one, the lane stays there until `settledUntilMs`.
 */
export type Lane = { queueId: number | undefined; settledUntilMs: number }

/** What a stream is made of. */
export type StreamDeps = {
  /** Sends parts as one request and settles each of them. Never rejects. */
  send(parts: Part[], lane: Lane): Promise<void>
  clock: Clock
  lingerMs: number
  /** The longest that messages gather behind a request that is not answered, while there is another lane. */
  maxGatherMs: number
  maxBatchMessages: number
  maxBatchBytes: number
  maxInFlight: number
  /** Ends the waits when the producer is closed. */
  signal: AbortSignal
}

/** Gathers the messages of one topic into requests. */
export type TopicStream = {
  add(part: Part): void
  /** Sends what lingers without waiting for company; with `forGood` nothing lingers any more. */
  hurry(forGood: boolean): void
}

/**
 * Gathers as Nagle's algorithm does: with nothing under way a message leaves at the end of the event loop's turn (or
 * after `lingerMs`); behind a request under way messages gather until it is answered, until there are enough for a full
 * batch, or for `maxGatherMs`. So a lone publish waits for nothing, and many at once cost few requests, which is also
 * what they cost in money. Order is kept as far as requests do not overtake each other: entirely with one lane.
 */
export function createTopicStream(deps: StreamDeps): TopicStream {
  const { clock, maxBatchMessages, maxBatchBytes } = deps
  let { lingerMs } = deps
  const gathered = createFifo<Part>()
  const freeLanes: Lane[] = Array.from({ length: deps.maxInFlight }, () => ({ queueId: undefined, settledUntilMs: 0 }))
  let messages = 0
  let bytes = 0
  let inFlight = 0
  let isScheduled = false
  let lingering: AbortController | undefined
  let isWatching = false

  const isFull = () => messages >= maxBatchMessages || bytes >= maxBatchBytes
  const isDue = () => gathered.length > 0 && freeLanes.length > 0 && (inFlight === 0 || isFull())

  function schedule() {
    if (!isDue()) {
      if (!isWatching && gathered.length > 0 && freeLanes.length > 0) void watch()
    } else if (lingerMs > 0 && !isFull()) {
      if (!lingering) void linger()
    } else if (!isScheduled) {
      isScheduled = true
      lingering?.abort()
      setImmediate(sendDue)
    }
  }

  async function linger() {
    const controller = new AbortController()
    lingering = controller
    await clock.sleep(lingerMs, controller.signal)
    lingering = undefined
    sendDue()
  }

  function sendDue() {
    isScheduled = false
    while (isDue()) launch()
    schedule()
  }

  function launch() {
    const lane = freeLanes.pop()
    if (!lane) return
    const parts = cut()
    inFlight++
    void deps.send(parts, lane).finally(() => {
      inFlight--
      // The last lane used is the next one: a quiet producer stays with one queue.
      freeLanes.push(lane)
      schedule()
    })
  }

  function cut(): Part[] {
    const parts: Part[] = []
    let cutMessages = 0
    let cutBytes = 0
    for (let next = gathered.peek(); next; next = gathered.peek()) {
      const isTooMuch = cutMessages + next.messages.length > maxBatchMessages || cutBytes + next.bytes > maxBatchBytes
      if (parts.length > 0 && isTooMuch) break
      gathered.shift()
      parts.push(next)
      cutMessages += next.messages.length
      cutBytes += next.bytes
    }
    messages -= cutMessages
    bytes -= cutBytes
    return parts
  }

  /** One request that hangs must not hold up the rest while there are other lanes. */
  async function watch() {
    isWatching = true
    while (gathered.length > 0 && freeLanes.length > 0 && inFlight > 0 && !deps.signal.aborted) {
      await clock.sleep(deps.maxGatherMs, deps.signal)
      const oldest = gathered.peek()
      if (oldest && inFlight > 0 && clock.monotonic() - oldest.call.calledAtMs >= deps.maxGatherMs) launch()
    }
    isWatching = false
  }

  return {
    add(part) {
      gathered.push(part)
      messages += part.messages.length
      bytes += part.bytes
      schedule()
    },
    hurry(forGood) {
      if (forGood) lingerMs = 0
      lingering?.abort()
    },
  }
}
