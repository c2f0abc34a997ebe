import { type Store, StoreError } from '../../core/store.ts'

export type Operation = {
  [K in keyof Store]: Store[K] extends (...args: never[]) => unknown ? K : never
}[keyof Store]

export type Call = { operation: Operation; args: readonly unknown[]; run: () => Promise<unknown> }

/** A store, or a part of one, whose operations pass through `around`: it may do them, wait, or answer in their place. */
export function intercept<S extends object>(store: S, around: (call: Call) => Promise<unknown>): S {
  return new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) =>
        around({ operation: name as Operation, args, run: async () => member.apply(target, args) })
    },
  })
}

/**
 * What a call meets. `lost request`: nothing was done, and the caller does not know. `lost answer`: it was done, and the
 * caller does not know. Or another answer, without anything done; or whatever a function does.
 */
export type Fate = 'done' | 'lost request' | 'lost answer' | { answer: unknown } | ((call: Call) => unknown)

export type ScriptedStore<S> = {
  store: S
  /** Every call so far. */
  calls: Call[]
  /** What the next calls of an operation meet, one each; those after them are done. */
  next(operation: Operation, ...fates: Fate[]): void
}

export function scriptStore<S extends object>(store: S): ScriptedStore<S> {
  const calls: Call[] = []
  const scripts = new Map<Operation, Fate[]>()
  return {
    calls,
    store: intercept(store, call => {
      calls.push(call)
      return meet(scripts.get(call.operation)?.shift() ?? 'done', call)
    }),
    next: (operation, ...fates) => scripts.set(operation, [...(scripts.get(operation) ?? []), ...fates]),
  }
}

/** Lets a call meet its fate. A store answers a doubtful append, and throws after any other. */
export async function meet(fate: Fate, call: Call): Promise<unknown> {
  const { operation, run } = call
  if (fate === 'done') return run()
  if (typeof fate === 'function') return fate(call)
  if (typeof fate === 'object') return fate.answer
  if (fate === 'lost answer') await run()
  const cause = new StoreError('unavailable', `${operation}: ${fate}`)
  if (operation === 'appendBatch') return { outcome: 'unknown', cause }
  throw cause
}
