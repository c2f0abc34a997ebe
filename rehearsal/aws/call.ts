import type { Caller } from '../iam/access.ts'

/** One call of an AWS API, as far as it was read. */
export type AwsCall = {
  caller: Caller
  method: string
  path: string
  /** The operation that the headers name, without the version of the API; a REST API names none. */
  operation: string
  headers: Record<string, string>
  body: Buffer
}

export type AwsAnswer = { status: number; headers?: Record<string, string>; body: string | Buffer }

/** An error of an AWS API: SDKs find its name in a header or in the body, by the protocol. */
export function awsError(status: number, code: string, message: string): AwsAnswer {
  return {
    status,
    headers: { 'x-amzn-errortype': code },
    body: JSON.stringify({ __type: code, message, Message: message }),
  }
}

export const accessDenied = (message: string, status = 400) => awsError(status, 'AccessDeniedException', message)

/** A call that the rehearsal does not have. It is reported: whatever the function makes of the error, it is no success. */
export const notRehearsed = (what: string) =>
  awsError(400, 'UnknownOperationException', `the rehearsal does not know ${what}`)
