import {
  ConditionalCheckFailedException,
  DynamoDBServiceException,
  TransactionCanceledException,
} from '@aws-sdk/client-dynamodb'
import type { Item } from './attributes.ts'

/**
 * What a failed request says about its effect:
 * - `throttled`: refused for its pace; not applied.
 * - `conflict`: met another transaction on the same item; not applied, worth another try at once.
 * - `unknown`: no answer, or a failure of the service: it may have been applied.
 * - `defect`: the request itself is wrong (or forbidden): repeating it cannot help, and somebody has to see it.
 */
export type Failure = 'throttled' | 'conflict' | 'unknown' | 'defect'

const throttlingNames = new Set([
  'ProvisionedThroughputExceededException',
  'ThrottlingException',
  'RequestLimitExceeded',
  'ThrottledException',
  'TooManyRequestsException',
])
const conflictNames = new Set(['TransactionConflictException', 'ReplicatedWriteConflictException'])
/** Reasons inside a cancelled transaction have names of their own. */
const throttlingReasons = new Set(['ProvisionedThroughputExceeded', 'ThrottlingError'])

export function classifyFailure(error: unknown): Failure {
  if (error instanceof TransactionCanceledException) return classifyCancellation(error)
  if (error instanceof DynamoDBServiceException) {
    if (throttlingNames.has(error.name)) return 'throttled'
    if (conflictNames.has(error.name)) return 'conflict'
    const status = error.$metadata?.httpStatusCode ?? 500
    return status >= 400 && status < 500 ? 'defect' : 'unknown'
  }
  return isOurs(error) ? 'defect' : 'unknown'
}

function classifyCancellation(error: TransactionCanceledException): Failure {
  const codes = (error.CancellationReasons ?? []).map(reason => reason.Code)
  if (codes.includes('TransactionConflict')) return 'conflict'
  if (codes.some(code => code !== undefined && throttlingReasons.has(code))) return 'throttled'
  return 'defect'
}

/** A wrong call in our own code, unless the SDK met it in a response that it could not read. */
function isOurs(error: unknown): boolean {
  const isCallError = error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError
  return isCallError && !('$response' in error)
}

/** A condition that did not hold; `old` is the item that it met, if there was one. */
export type Refusal = { old: Item | undefined }

/** The refusal that an error stands for, if it stands for one. */
export function refusalOf(error: unknown): Refusal | undefined {
  return error instanceof ConditionalCheckFailedException ? { old: itemOrNothing(error.Item) } : undefined
}

/**
 * The refusals of a cancelled transaction by position, if refused conditions are all that cancelled it. Where a
 * conflict did too, the conditions may have been judged in a state that is over.
 */
export function refusalsOf(error: unknown): (Refusal | undefined)[] | undefined {
  if (!(error instanceof TransactionCanceledException)) return undefined
  const reasons = error.CancellationReasons ?? []
  const refused = reasons.some(reason => reason.Code === 'ConditionalCheckFailed')
  const onlyRefused = reasons.every(reason => ['None', 'ConditionalCheckFailed', undefined].includes(reason.Code))
  if (!refused || !onlyRefused) return undefined
  return reasons.map(reason =>
    reason.Code === 'ConditionalCheckFailed' ? { old: itemOrNothing(reason.Item) } : undefined,
  )
}

/** Some engines send an empty item where there is none. */
const itemOrNothing = (item: Item | undefined) =>
  item === undefined || Object.keys(item).length === 0 ? undefined : item
