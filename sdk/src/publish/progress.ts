/** Counts calls under way, so that one can wait for those made so far while others keep coming. */
export type Progress = {
  begin(): Ticket
  /** Resolves when every call begun before has ended. */
  settled(): Promise<void>
}

/** Handed to a call when it begins; the call ends it once. */
export type Ticket = { end(): void }

/** Calls between two questions share one counter: what a call costs does not depend on how many there are. */
export function createProgress(): Progress {
  let current = createPeriod()
  let earlier: Promise<unknown> = Promise.resolve()
  return {
    begin() {
      current.open++
      return current
    },
    async settled() {
      if (current.open > 0) {
        const closing = current
        current = createPeriod()
        earlier = Promise.all([earlier, closing.whenEmpty()])
      }
      await earlier
    },
  }
}

function createPeriod() {
  let onEmpty: (() => void) | undefined
  return {
    open: 0,
    end() {
      if (--this.open === 0) onEmpty?.()
    },
    /** To be asked when no more calls are added. */
    whenEmpty(): Promise<void> {
      return new Promise(resolve => {
        if (this.open === 0) resolve()
        onEmpty = resolve
      })
    },
  }
}
