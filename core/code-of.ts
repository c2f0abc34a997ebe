import { type ErrorCode, PmqError } from './protocol/errors.ts'
import { StoreError } from './store.ts'

/** The code by which an error is told to a caller. */
export function codeOf(error: unknown): ErrorCode {
  if (error instanceof PmqError) return error.code
  if (error instanceof StoreError) return error.kind
  return 'internal'
}
