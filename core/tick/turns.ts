import { forEachOf } from '../for-each-of.ts'
import type { Clock } from '../protocol/clock.ts'
import type { TickReport } from './report.ts'

/** How a tick does what it has to: what fails keeps nothing else from its turn, and when its time is over it begins with nothing more. */
export type Turns = {
  attempt(what: string, act: () => Promise<void>): Promise<void>
  /** Some at once, in another order each time: so all get their turn within a few ticks, where they do not fit into one. */
  each(names: readonly string[], what: string, act: (name: string) => Promise<void>): Promise<void>
}

export function createTurns(
  { clock, random }: { clock: Clock; random: () => number },
  report: Pick<TickReport, 'failed' | 'left'>,
  budgetMs: number,
): Turns {
  const endsAtMs = clock.monotonic() + budgetMs

  async function attempt(what: string, act: () => Promise<void>) {
    try {
      await act()
    } catch (cause) {
      // The next tick tries again.
      report.failed.push({ what, cause })
    }
  }

  return {
    attempt,
    each: (names, what, act) =>
      forEachOf(shuffle(names, random), async name => {
        if (clock.monotonic() >= endsAtMs) report.left++
        else await attempt(`${what} ${name}`, () => act(name))
      }),
  }
}

/** Fisher and Yates. */
function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const shuffled = [...items]
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    const [a, b] = [shuffled[i] as T, shuffled[j] as T]
    shuffled[i] = b
    shuffled[j] = a
  }
  return shuffled
}
