/** What a failed invocation tells, as Lambda tells it. */
export type FunctionError = { errorType: string; errorMessage: string; trace?: string[] }

/** From the rehearsal to the process of an instance: one request. */
export type ToInstance = { requestId: string; payload: string; deadlineMs: number; arn: string; aheadMs: number }

/** From the process of an instance. */
export type FromInstance =
  | { type: 'loaded' }
  | { type: 'not loaded'; error: FunctionError }
  | { type: 'returned'; requestId: string; payload: string }
  | { type: 'failed'; requestId: string; error: FunctionError }
