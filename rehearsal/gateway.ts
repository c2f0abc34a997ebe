import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda'
import { createMatch, type Matched, type Route } from '../bin/host/gateway.ts'
import type { Backend } from '../bin/host/server.ts'
import { systemClock } from '../core/protocol/clock.ts'
import type { Access } from './iam/access.ts'
import type { Invocation, RunningFunction } from './lambda/function.ts'
import { lambdaLimits } from './lambda/limits.ts'
import { account, arnOf } from './template/account.ts'
import { asNumber, asText, expectOnly } from './template/read.ts'
import type { Resolved, Stack } from './template/stack.ts'

/** https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html */
const maxRequestBytes = 10 * 1024 * 1024
const maxTimeoutMs = 30_000

type Target = { lambda: RunningFunction; timeoutMs: number; isSigned: boolean; sourceArn: string }

/**
 * API Gateway's HTTP API by the template: its routes and no other, its limits, its answers where a function gives none. A
 * route that asks for an IAM signature takes every request as signed by one local identity, whose policies allow the call.
 */
export function createGateway(
  stack: Stack,
  functions: ReadonlyMap<string, RunningFunction>,
  access: Access,
): Backend<Target> & { signedRoutes: number } {
  const routes = readRoutes(stack, functions)

  async function invoke({ target }: Matched<Target>, event: APIGatewayProxyEventV2, requestId: string) {
    const { lambda, isSigned, timeoutMs, sourceArn } = target
    const caller = { name: `API Gateway for ${event.routeKey}`, principal: { service: 'apigateway.amazonaws.com' } }
    const context = { 'aws:sourcearn': [sourceArn] }
    if (access.ask(caller, 'lambda:InvokeFunction', lambda.spec.arn, context).refusal) return internalError
    const payload = JSON.stringify(isSigned ? signed(event) : event)
    if (Buffer.byteLength(payload) > lambdaLimits.maxPayloadBytes) return failure(413, 'Request Entity Too Large')
    const stopped = new AbortController()
    const timeOut = systemClock.sleep(timeoutMs, stopped.signal).then(() => undefined)
    const result = await Promise.race([lambda.invoke(payload, requestId), timeOut])
    stopped.abort()
    return toAnswer(result)
  }

  return {
    match: createMatch(routes),
    invoke,
    maxRequestBytes,
    signedRoutes: routes.filter(({ target }) => target.isSigned).length,
  }
}

function failure(statusCode: number, message: string): APIGatewayProxyStructuredResultV2 {
  return { statusCode, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ message }) }
}
/** Whatever a function does wrong: it throws, ends, takes too long, answers too much. */
const internalError = failure(500, 'Internal Server Error')

/** https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html */
function toAnswer(result: Invocation | undefined): APIGatewayProxyStructuredResultV2 {
  // The gateway has waited for as long as it may, or there are too many requests at once for the function.
  if (result === undefined || result.outcome === 'throttled') return failure(503, 'Service Unavailable')
  if (result.outcome === 'failed') return internalError
  const answer: APIGatewayProxyStructuredResultV2 | null = JSON.parse(result.payload)
  if (typeof answer === 'object' && answer?.statusCode !== undefined) return answer
  return { statusCode: 200, headers: { 'content-type': 'application/json' }, body: result.payload }
}

/** The event with the identity that API Gateway would have found in the signature. */
function signed(event: APIGatewayProxyEventV2): object {
  const userArn = `arn:${account.partition}:iam::${account.id}:user/rehearsal`
  const iam = {
    accessKey: 'AKIAREHEARSAL',
    accountId: account.id,
    callerId: 'rehearsal',
    cognitoIdentity: null,
    principalOrgId: null,
    userArn,
    userId: 'rehearsal',
  }
  const { requestContext } = event
  return { ...event, requestContext: { ...requestContext, accountId: account.id, authorizer: { iam } } }
}

function readRoutes(stack: Stack, functions: ReadonlyMap<string, RunningFunction>): Route<Target>[] {
  const apis = stack.all('AWS::ApiGatewayV2::Api')
  for (const { id, properties } of apis) {
    expectOnly(properties, id, ['Name', 'ProtocolType', 'Description', 'Tags'])
    if (properties.ProtocolType !== 'HTTP') throw new Error(`the rehearsal knows HTTP APIs, and ${id} is another one`)
  }
  for (const { id, properties } of stack.all('AWS::ApiGatewayV2::Stage')) {
    expectOnly(properties, id, ['ApiId', 'AutoDeploy', 'StageName', 'AccessLogSettings', 'Tags'])
    if (properties.StageName !== '$default')
      throw new Error(`the rehearsal knows the stage $default, and ${id} is another one`)
  }
  if (apis.length > 1) throw new Error(`the rehearsal knows one HTTP API, and the template has ${apis.length}`)

  return stack.all('AWS::ApiGatewayV2::Route').map(route => {
    const { id, properties } = route
    expectOnly(properties, id, ['ApiId', 'AuthorizationType', 'RouteKey', 'Target'])
    const routeKey = asText(properties.RouteKey, id)
    const [, method = '', path = ''] = /^([A-Z]+) (\/\S*)$/.exec(routeKey) ?? []
    if (path === '' || method === 'ANY' || path.includes('+}')) {
      throw new Error(`the rehearsal knows routes with a method and a path, not ${routeKey} of ${id}`)
    }
    const sourceArn = arnOf('execute-api', `${asText(properties.ApiId, id)}/$default/${method}${path}`)
    return {
      method,
      path,
      target: { ...readIntegration(stack, functions, route), isSigned: asksForSignature(route), sourceArn },
    }
  })
}

function asksForSignature({ id, properties }: Resolved): boolean {
  const { AuthorizationType = 'NONE' } = properties
  if (AuthorizationType === 'AWS_IAM' || AuthorizationType === 'NONE') return AuthorizationType === 'AWS_IAM'
  throw new Error(`the rehearsal does not know the authorization ${AuthorizationType} of ${id}`)
}

function readIntegration(stack: Stack, functions: ReadonlyMap<string, RunningFunction>, route: Resolved) {
  const ref = asText(route.properties.Target, route.id).replace('integrations/', '')
  const integration = stack.all('AWS::ApiGatewayV2::Integration').find(each => each.ref === ref)
  if (!integration) throw new Error(`${route.id} leads to no integration of the template`)
  const { id, properties } = integration
  expectOnly(properties, id, ['ApiId', 'IntegrationType', 'IntegrationUri', 'PayloadFormatVersion', 'TimeoutInMillis'])
  const { IntegrationType, IntegrationUri, PayloadFormatVersion, TimeoutInMillis = maxTimeoutMs } = properties
  if (IntegrationType !== 'AWS_PROXY' || PayloadFormatVersion !== '2.0') {
    throw new Error(
      `the rehearsal knows AWS_PROXY with payload format 2.0, not ${IntegrationType} ${PayloadFormatVersion} of ${id}`,
    )
  }
  const lambda = functions.get(asText(IntegrationUri, id).replace(/^.*function:/, ''))
  if (!lambda) throw new Error(`${id} leads to ${IntegrationUri}, which is no function of the template`)
  return { lambda, timeoutMs: Math.min(asNumber(TimeoutInMillis, id), maxTimeoutMs) }
}
