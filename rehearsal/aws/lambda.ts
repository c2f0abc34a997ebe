import type { Access } from '../iam/access.ts'
import type { Asynchronous } from '../lambda/asynchronous.ts'
import type { RunningFunction } from '../lambda/function.ts'
import { lambdaLimits } from '../lambda/limits.ts'
import { arnOf } from '../template/account.ts'
import { type AwsAnswer, type AwsCall, accessDenied, awsError, notRehearsed } from './call.ts'

/** Lambda's API, of which it has `Invoke`, of functions by name or ARN. */
export function createLambdaApi(
  functions: ReadonlyMap<string, RunningFunction>,
  asynchronous: Asynchronous,
  access: Access,
): (call: AwsCall) => Promise<AwsAnswer> {
  return async call => {
    const [, named] = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/.exec(call.path) ?? []
    if (call.method !== 'POST' || named === undefined) return notRehearsed(`lambda: ${call.method} ${call.path}`)
    const name = named.replace(/^.*function:/, '')
    const arn = arnOf('lambda', `function:${name}`)
    const { refusal } = access.ask(call.caller, 'lambda:InvokeFunction', arn)
    if (refusal) return accessDenied(refusal, 403)
    const target = functions.get(name)
    if (!target) return awsError(404, 'ResourceNotFoundException', `Function not found: ${arn}`)

    const type = call.headers['x-amz-invocation-type'] ?? 'RequestResponse'
    if (type !== 'Event' && type !== 'RequestResponse') return notRehearsed(`lambda: invocation type ${type}`)
    const isAsynchronous = type === 'Event'
    const maxBytes = isAsynchronous ? lambdaLimits.maxAsyncPayloadBytes : lambdaLimits.maxPayloadBytes
    if (call.body.length > maxBytes) {
      return awsError(
        413,
        'RequestTooLargeException',
        `${call.body.length} byte payload is too large for the ${type} invocation type (limit ${maxBytes} bytes)`,
      )
    }
    const payload = call.body.length === 0 ? '{}' : call.body.toString()
    if (isAsynchronous) {
      asynchronous.invoke(target, payload)
      return { status: 202, body: '' }
    }
    return toAnswer(await target.invoke(payload))
  }
}

function toAnswer(result: Awaited<ReturnType<RunningFunction['invoke']>>): AwsAnswer {
  if (result.outcome === 'throttled') return awsError(429, 'TooManyRequestsException', 'Rate Exceeded.')
  const headers = { 'content-type': 'application/json', 'x-amz-executed-version': '$LATEST' }
  if (result.outcome === 'returned') return { status: 200, headers, body: result.payload }
  return {
    status: 200,
    headers: { ...headers, 'x-amz-function-error': 'Unhandled' },
    body: JSON.stringify(result.error),
  }
}
