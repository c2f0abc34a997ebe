import type { Handled } from './consumer.ts'

/** What the consumers report, counted: by record, and by consumer. */
export type Tally = {
  /** `consumer` was handed these. */
  count(consumer: string, handled: readonly Handled[]): void
  readonly distinct: number
  readonly duplicates: number
  perConsumer(): { consumer: string; handled: number }[]
  /** Milliseconds from publish to handler below which this share of the deliveries lies. */
  latencyMs(share: number): number
}

export function createTally(): Tally {
  const times = new Map<string, number>()
  const byConsumer = new Map<string, number>()
  const latencies: number[] = []
  let deliveries = 0
  return {
    count(consumer, handled) {
      byConsumer.set(consumer, (byConsumer.get(consumer) ?? 0) + handled.length)
      for (const { id, latencyMs } of handled) {
        times.set(id, (times.get(id) ?? 0) + 1)
        latencies.push(latencyMs)
        deliveries++
      }
    },
    get distinct() {
      return times.size
    },
    get duplicates() {
      return deliveries - times.size
    },
    perConsumer: () => [...byConsumer].map(([consumer, handled]) => ({ consumer, handled })),
    latencyMs(share) {
      latencies.sort((a, b) => a - b)
      return latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
    },
  }
}
