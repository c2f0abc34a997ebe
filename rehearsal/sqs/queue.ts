import { randomUUID } from 'node:crypto'
import type { MovableClock } from '../clock.ts'

/** A message as its queue keeps it. */
export type QueuedMessage = {
  messageId: string
  body: string
  attributes: Record<string, unknown>
  sentAtMs: number
  firstReceivedAtMs: number | undefined
  visibleAtMs: number
  receiveCount: number
  /** Of the last time that it was received: whoever has an older one can do nothing with it any more. */
  receipt: string
}

export type QueueSpec = {
  name: string
  arn: string
  delayMs: number
  visibilityMs: number
  retentionMs: number
  redrive: { deadLetterArn: string; maxReceiveCount: number } | undefined
}

export type LocalQueue = {
  spec: QueueSpec
  /** Every message that is in it, received or not. */
  messages(): readonly QueuedMessage[]
  send(body: string, options?: { delayMs?: number; attributes?: Record<string, unknown> }): string
  /** At least one message, as soon as one is visible; none once `signal` aborts. */
  receive(most: number, signal: AbortSignal): Promise<QueuedMessage[]>
  delete(receipt: string): void
}

/** A standard queue in memory: delay, visibility, retention, and the dead-letter queue for what was received too often. */
export function createQueue(
  spec: QueueSpec,
  clock: MovableClock,
  /** Finds a queue by its ARN: the one for dead letters. */
  findQueue: (arn: string) => LocalQueue | undefined,
): LocalQueue {
  let messages: QueuedMessage[] = []
  let wake = new AbortController()

  function takeVisible(most: number): QueuedMessage[] {
    const nowMs = clock.now()
    messages = messages.filter(({ sentAtMs }) => nowMs - sentAtMs < spec.retentionMs)
    const taken: QueuedMessage[] = []
    for (const message of messages.filter(({ visibleAtMs }) => visibleAtMs <= nowMs)) {
      if (taken.length === most) break
      if (spec.redrive && message.receiveCount >= spec.redrive.maxReceiveCount) {
        messages = messages.filter(other => other !== message)
        findQueue(spec.redrive.deadLetterArn)?.send(message.body, { delayMs: 0, attributes: message.attributes })
        continue
      }
      message.receiveCount++
      message.firstReceivedAtMs ??= nowMs
      message.visibleAtMs = nowMs + spec.visibilityMs
      message.receipt = randomUUID()
      taken.push({ ...message })
    }
    return taken
  }

  return {
    spec,
    messages: () => messages,
    send(body, { delayMs = spec.delayMs, attributes = {} } = {}) {
      const sentAtMs = clock.now()
      const messageId = randomUUID()
      messages.push({
        messageId,
        body,
        attributes,
        sentAtMs,
        firstReceivedAtMs: undefined,
        visibleAtMs: sentAtMs + delayMs,
        receiveCount: 0,
        receipt: '',
      })
      wake.abort()
      wake = new AbortController()
      return messageId
    },
    async receive(most, signal) {
      while (!signal.aborted) {
        const taken = takeVisible(most)
        if (taken.length > 0) return taken
        const nextMs = Math.min(...messages.map(({ visibleAtMs }) => visibleAtMs), clock.now() + spec.retentionMs)
        // Both the clock and whoever sends can bring the next one.
        await clock.sleep(Math.max(1, nextMs - clock.now()), AbortSignal.any([signal, wake.signal]))
      }
      return []
    },
    delete(receipt) {
      messages = messages.filter(message => message.receipt !== receipt)
    },
  }
}
