import type { APIGatewayProxyEventV2 } from 'aws-lambda'
import type { Caller } from '../../core/audit/records.ts'

/**
 * Who sent a request: whom its authorizer has found. IAM: the ARN, which has the account in it. On one machine nobody is
 * asked for a key.
 */
export function callerOf({ requestContext }: APIGatewayProxyEventV2): Caller {
  const { accountId, http, authorizer } = requestContext as RequestContext
  const { userArn, userId } = authorizer?.iam ?? {}
  const who = userArn ?? userId ?? (accountId === localAccount ? 'local' : 'unknown')
  return { who, ip: http.sourceIp }
}

/** What the host on one machine, which stands in for API Gateway, names as its account. */
export const localAccount = 'local'

type RequestContext = APIGatewayProxyEventV2['requestContext'] & {
  authorizer?: { iam?: { userArn?: string | null; userId?: string | null } }
}
