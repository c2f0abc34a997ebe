import type { Trace, TraceOutcome } from './tracing.ts'

// What is traced must not suffer from it, and there is nobody to tell: a broken trace is missed where traces are looked at.

/** What `make` returns; undefined if it throws. */
export function contained<Made>(make: () => Made): Made | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}

/** Ends a trace. Throws nothing. */
export function endTrace<Result>(trace: Trace<Result>, outcome: TraceOutcome<Result>): void {
  contained(() => trace.end(outcome))
}
