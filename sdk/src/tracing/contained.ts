import { ignoreRejection, isThenable } from '../thenable.ts'
import type { Trace, TraceOutcome } from './tracing.ts'

// What is traced must not suffer from it, and there is nobody to tell: a broken trace is missed where traces are looked at.

/** What `make` returns; undefined if it throws, or is a promise, for which nobody waits. */
export function contained<Made>(make: () => Made): Made | undefined {
  try {
    const made = make()
    if (!isThenable(made)) return made
    void ignoreRejection(made)
    return undefined
  } catch {
    return undefined
  }
}

/** Ends a trace. Throws nothing. */
export function endTrace<Result>(trace: Trace<Result>, outcome: TraceOutcome<Result>): void {
  contained(() => trace.end(outcome))
}
