import { setTimeout as sleep } from 'node:timers/promises'

/** What takes longer than this, on a machine however busy, does not happen. */
const patienceMs = 40_000
const lookEveryMs = 20

type Look<T> = T | false | undefined

/** Looks again and again until there is something to see, and returns that. */
export async function until<T>(what: string, look: () => Look<T> | Promise<Look<T>>): Promise<T> {
  for (const since = performance.now(); ; await sleep(lookEveryMs)) {
    const seen = await look()
    if (seen !== undefined && seen !== false) return seen
    if (performance.now() - since > patienceMs) throw new Error(`waited for ${patienceMs / 1000} s in vain: ${what}`)
  }
}
