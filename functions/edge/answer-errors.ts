import type { MiddlewareObj } from '@middy/core'
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda'
import { codeOf } from '../../core/code-of.ts'
import { errorTable, PmqError } from '../../core/protocol/errors.ts'
import { logError } from './log.ts'

/**
 * Answers errors as the error table says. What a caller can do something about is told; what is our fault is logged with
 * the request's id, which is all that the caller gets.
 */
export const answerErrors: MiddlewareObj<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2> = {
  onError(request) {
    const error = request.error
    const requestId = request.context.awsRequestId
    const code = codeOf(error)
    if (code === 'internal' || code === 'unavailable') {
      logError('a request failed', { requestId, route: request.event.routeKey, code }, error)
    }
    const message = error instanceof PmqError ? error.message : errorTable[code].meaning
    request.response = {
      statusCode: errorTable[code].status,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        ...(errorTable[code].retryable && { 'retry-after': '1' }),
      },
      body: JSON.stringify({ code, message, requestId }),
    }
  },
}
