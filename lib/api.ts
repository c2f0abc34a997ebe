import { HttpApi, HttpMethod } from 'aws-cdk-lib/aws-apigatewayv2'
import { HttpIamAuthorizer } from 'aws-cdk-lib/aws-apigatewayv2-authorizers'
import { HttpLambdaIntegration } from 'aws-cdk-lib/aws-apigatewayv2-integrations'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { Construct } from 'constructs'
import { type Endpoint, endpoints, type FunctionName } from '../core/protocol/endpoints.ts'

/**
 * The HTTP API: a route for each endpoint of the protocol, and no other. Closed by default: every route asks for an IAM
 * signature, until clients can have API keys. An HTTP API, since a request costs less than a third of a REST API's.
 */
export class Api extends Construct {
  /** What clients are given as the service's URL, without a slash at its end. */
  readonly url: string

  constructor(scope: Construct, id: string, functions: Record<FunctionName, IFunction>) {
    super(scope, id)
    const httpApi = new HttpApi(this, 'HttpApi', { defaultAuthorizer: new HttpIamAuthorizer() })
    const integrations = {
      publish: integrate('Publish', functions.publish),
      consume: integrate('Consume', functions.consume),
      admin: integrate('Admin', functions.admin),
    }
    for (const endpoint of Object.values<Endpoint>(endpoints)) {
      httpApi.addRoutes({
        path: endpoint.path,
        methods: [HttpMethod[endpoint.method]],
        integration: integrations[endpoint.function],
      })
    }
    this.url = httpApi.apiEndpoint
  }
}

/** One permission per function instead of one per route: a function's policy holds 20 KB, which the routes would fill. */
function integrate(id: string, target: IFunction) {
  return new HttpLambdaIntegration(id, target, { scopePermissionToRoute: false })
}
