import type { Clock } from '../../../core/protocol/clock.ts'

/** Whose turn it is, among the queues of a consumer, to have a message on trial. */
export type TrialTurns = {
  /** Gets in line. It has its turn until it passes, and for `maxMs` at most. */
  take(maxMs: number): Turn
}

/** A place in the line. */
export type Turn = {
  /** Resolves when its turn begins; for one that has passed before, perhaps never. */
  readonly begun: Promise<void>
  /** Lets the next one begin. Safe to call twice. */
  pass(): void
}

/**
 * A process that ends takes all of its queues along. Had several of them messages on trial, nobody could say which one it
 * was; so they have their trials one after the other. One that takes long lets the next begin.
 */
export function createTrialTurns(clock: Clock): TrialTurns {
  /** The first has its turn. */
  const line: { begin(): void }[] = []

  return {
    take(maxMs) {
      const patience = new AbortController()
      let begin: () => void = () => undefined
      const begun = new Promise<void>(resolve => {
        begin = () => {
          resolve()
          void clock.sleep(maxMs, patience.signal).then(pass)
        }
      })
      const place = { begin }
      line.push(place)
      if (line.length === 1) begin()

      function pass() {
        patience.abort()
        const at = line.indexOf(place)
        if (at === -1) return
        line.splice(at, 1)
        if (at === 0) line[0]?.begin()
      }
      return { begun, pass }
    },
  }
}
