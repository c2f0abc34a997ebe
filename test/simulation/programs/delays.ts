import type { SubscriptionSettings } from '../../../core/model.ts'
import type { Message } from '../../../sdk/src/index.ts'
import { startMs } from '../world/process.ts'

/**
 * Watches that nobody is handed a message before it is due (Q15), by the world's own clock, which is the service's until
 * somebody sets one. What the checker of histories cannot see, since it knows no time.
 */
export type Delays = {
  /** A group may work by these settings from now on. */
  mayBe(groupName: string, settings: SubscriptionSettings): void
  handedOut(client: string, groupName: string, message: Message, isRetried: boolean, nowMs: number): void
  /** What was seen that must not be. */
  readonly violations: readonly string[]
  /** Clocks were set: nothing can be said any more. */
  stopWatching(): void
}

/** Clocks say whole milliseconds. */
const toleranceMs = 1

export function createDelays(): Delays {
  const violations: string[] = []
  const known = new Map<string, SubscriptionSettings[]>()
  let isOver = false
  return {
    violations,
    mayBe(groupName, settings) {
      known.set(groupName, [...(known.get(groupName) ?? []), settings])
    },
    handedOut(client, groupName, { queueId, offset, retryCount, publishedAtMs }, isRetried, nowMs) {
      const delays = known
        .get(groupName)
        ?.map(settings => (isRetried ? retryMs(settings, retryCount) : normalMs(settings)))
      if (isOver || !delays) return
      const dueAtMs = publishedAtMs - startMs + Math.min(...delays)
      if (nowMs >= dueAtMs - toleranceMs) return
      const text = `${client} was handed queue ${queueId}, offset ${offset} at ${nowMs} ms, which was due at ${dueAtMs} ms`
      violations.push(`Q15: ${text}`)
    },
    stopWatching() {
      isOver = true
    },
  }
}

const normalMs = ({ delayProcessTimeSeconds }: SubscriptionSettings) => delayProcessTimeSeconds * 1000

function retryMs(settings: SubscriptionSettings, retryCount: number): number {
  const { retryDelaySeconds, retryBackoffRate, maxRetryDelaySeconds } = settings
  return Math.min(maxRetryDelaySeconds, retryDelaySeconds * retryBackoffRate ** (retryCount - 1)) * 1000
}
