/** One figure of a benchmark: what was measured, and messages per second in each round. */
export type Figure = { name: string; perSecond: number[] }

/** Runs `act` for a number of messages, and tells how many a second that was. */
export async function measure(messages: number, act: () => Promise<void>): Promise<number> {
  const startedAt = performance.now()
  await act()
  return (messages / (performance.now() - startedAt)) * 1000
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? 0
}

/** Keeps `inFlight` calls of `act` under way until it has been called `times` times. */
export async function inParallel(times: number, inFlight: number, act: () => Promise<unknown>): Promise<void> {
  let left = times
  const lane = async () => {
    while (left-- > 0) await act()
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
}

/** A table of medians, with the spread beside them: the machine is noisy. */
export function printFigures(figures: readonly Figure[]): void {
  const thousands = (perSecond: number) => Math.round(perSecond).toLocaleString('en')
  console.table(
    Object.fromEntries(
      figures.map(({ name, perSecond }) => [
        name,
        {
          'median msg/s': thousands(median(perSecond)),
          least: thousands(Math.min(...perSecond)),
          most: thousands(Math.max(...perSecond)),
        },
      ]),
    ),
  )
}
