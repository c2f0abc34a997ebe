/**
 * Counts the immediates that are waiting. The store answers its writes from one, the SDK gathers by them: while there are
 * any, something goes on without time having to pass. Replaces the global function, so it is for processes that simulate.
 */
export type Immediates = {
  readonly waiting: number
  /** The real one, not counted. */
  next(act: () => void): void
  restore(): void
}

export function countImmediates(): Immediates {
  const real = globalThis.setImmediate
  let waiting = 0
  function counted<Args extends unknown[]>(act: (...args: Args) => void, ...args: Args): NodeJS.Immediate {
    waiting++
    return real(() => {
      waiting--
      act(...args)
    })
  }
  globalThis.setImmediate = Object.assign(counted, { __promisify__: real.__promisify__ })
  return {
    get waiting() {
      return waiting
    },
    next: act => void real(act),
    restore() {
      globalThis.setImmediate = real
    },
  }
}
