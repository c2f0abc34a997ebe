import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb'

export type ClientOptions = {
  /** An endpoint other than that of the region. */
  endpoint?: string
  /** @default the environment's (`AWS_REGION`) */
  region?: string
  /** @default the environment's */
  credentials?: DynamoDBClientConfig['credentials']
  /** Longest time for one request, in milliseconds. DynamoDB answers within tens; a Lambda has seconds for all of its work. @default 2000 */
  requestTimeoutMs?: number
  /** Longest time to connect, in milliseconds; waiting for one of `maxConnections` counts. @default 1000 */
  connectTimeoutMs?: number
  /** Requests under way at once; more wait for a connection. @default 100 */
  maxConnections?: number
}

/**
 * A DynamoDB client as the store wants it.
 *
 * It makes one attempt per request (`maxAttempts: 1`). The SDK's own retries are blind to what a request means: one that
 * was applied and lost its answer is refused when it is repeated, or throttled, and the last error is all that the SDK
 * reports. The store repeats what can be repeated itself (`requests.ts`) and says `unknown` where it does not know.
 */
export function createClient(options: ClientOptions = {}): DynamoDBClient {
  const { endpoint, region, credentials, requestTimeoutMs = 2000, connectTimeoutMs = 1000 } = options
  const agent = { keepAlive: true, maxSockets: options.maxConnections ?? 100 }
  return new DynamoDBClient({
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
    ...(credentials !== undefined && { credentials }),
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: connectTimeoutMs,
      requestTimeout: requestTimeoutMs,
      // Without it the time-out above is a warning only.
      throwOnRequestTimeout: true,
      // The request's time-out ends with the answer's head; this one bounds a body that stops in the middle.
      socketTimeout: requestTimeoutMs,
      httpAgent: agent,
      httpsAgent: agent,
    },
    // Half the CPU of reading 100 KB of binary, against the SDK's portable decoder.
    base64Decoder: text => Buffer.from(text, 'base64'),
  })
}
