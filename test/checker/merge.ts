import type { HistoryEvent } from './history.ts'

/**
 * One history out of several that were recorded at the same time, say one in each process. Goes by `at`, so their
 * clocks must be one and fine: `performance.timeOrigin + performance.now()`, on one machine. Each keeps its own order.
 * Clients must have different names in different histories.
 */
export function mergeHistories(histories: readonly (readonly HistoryEvent[])[]): HistoryEvent[] {
  const entries = histories.flatMap(events => {
    let at = Number.NEGATIVE_INFINITY
    return events.map(event => {
      at = Math.max(at, event.at)
      return { events, event, at }
    })
  })
  entries.sort((a, b) => a.at - b.at)

  const seqOf = new Map(entries.map(({ event }, seq) => [event, seq]))
  return entries.map(({ events, event }, seq) => {
    if (!('op' in event)) return { ...event, seq }
    const invoke = events[event.op]
    const op = invoke && seqOf.get(invoke)
    if (op === undefined) throw new Error(`event ${event.seq} of ${event.client} ends operation ${event.op}, not begun`)
    return { ...event, seq, op }
  })
}
