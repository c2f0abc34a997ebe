import { InvokeCommand, LambdaClient, type LambdaClientConfig, LambdaServiceException } from '@aws-sdk/client-lambda'

export type InvokeRequest = {
  functionName: string
  /** JSON. */
  payload: string
  timeoutMs: number
  signal?: AbortSignal
}

/** What has become of an invocation that was waited for. */
export type InvokeAnswer =
  | { outcome: 'returned'; payload: string }
  | { outcome: 'function_failed'; error: string }
  | { outcome: 'not_started'; error: string; retryAfterMs?: number }
  | { outcome: 'no_answer'; error: string }

/** Invokes a function and waits for what it returns. Never rejects. */
export type Invoke = (request: InvokeRequest) => Promise<InvokeAnswer>

export type LambdaClientOptions = Pick<LambdaClientConfig, 'endpoint' | 'region' | 'credentials'> & {
  /** Longest time to connect, in milliseconds; waiting for one of `maxConnections` counts. @default 2000 */
  connectTimeoutMs?: number
  /** Invocations under way at once. @default 1000: more than a run begins */
  maxConnections?: number
}

/**
 * A client of AWS as invocations want it. It tries once: of a second try nobody would know whether the function has run
 * twice. And it keeps no connection, which may have ended while a process was frozen: what is lost on it counts as an attempt.
 */
export function createLambdaClient(options: LambdaClientOptions = {}): LambdaClient {
  const { connectTimeoutMs = 2_000, maxConnections: maxSockets = 1_000, ...given } = options
  const agent = { keepAlive: false, maxSockets }
  return new LambdaClient({
    ...given,
    maxAttempts: 1,
    requestHandler: { connectionTimeout: connectTimeoutMs, httpAgent: agent, httpsAgent: agent },
  })
}

/**
 * Invokes by a client that `createLambdaClient` has made. `Event`: Lambda takes the event, and runs the function later; what is
 * returned then is nothing.
 */
export function createInvoke(
  client: LambdaClient,
  InvocationType: 'RequestResponse' | 'Event' = 'RequestResponse',
): Invoke {
  return async ({ functionName, payload, timeoutMs, signal }) => {
    const timeUp = AbortSignal.timeout(timeoutMs)
    const command = new InvokeCommand({
      FunctionName: functionName,
      InvocationType,
      Payload: Buffer.from(payload),
    })
    try {
      const abortSignal = signal ? AbortSignal.any([signal, timeUp]) : timeUp
      const { FunctionError, Payload } = await client.send(command, { abortSignal })
      // Nothing is returned to who does not wait; whether that is null, undefined or empty is the client's matter.
      const text = Buffer.from(Payload ?? []).toString()
      if (FunctionError !== undefined) return { outcome: 'function_failed', error: failureOf(text) }
      return { outcome: 'returned', payload: text }
    } catch (error) {
      if (timeUp.aborted) return { outcome: 'no_answer', error: `the function took more than ${timeoutMs} ms` }
      const text = textOf(error)
      if (!isBeforeStart(error)) return { outcome: 'no_answer', error: text }
      const retryAfterMs = Number((error as { retryAfterSeconds?: unknown }).retryAfterSeconds) * 1000
      return { outcome: 'not_started', error: text, ...(Number.isFinite(retryAfterMs) && { retryAfterMs }) }
    }
  }
}

/** Errors of AWS's side that come before a function's first line: its network, its keys, its code. */
const setUpFailure = /^(EC2|ENI|KMS|Subnet|InvalidRuntime|InvalidSecurity|InvalidSubnet|InvalidZip|ResourceNotReady)/

/** Only where that is certain: what fails on AWS's side without a reason may have run. */
function isBeforeStart(error: unknown): boolean {
  if (error instanceof LambdaServiceException) return error.$fault === 'client' || setUpFailure.test(error.name)
  const { name, syscall, message } = error as { name?: unknown; syscall?: unknown; message?: unknown }
  // It has no other sign.
  if (name === 'TimeoutError' && String(message).includes('did not establish a connection')) return true
  return syscall === 'connect' || syscall === 'getaddrinfo' || name === 'CredentialsProviderError'
}

/** The kind of error alone: its text is the function's, and may quote a message. */
function failureOf(payload: string): string {
  try {
    const { errorType } = JSON.parse(payload) as { errorType?: unknown }
    if (typeof errorType === 'string') return `the function failed: ${printable(errorType).slice(0, maxTypeLength)}`
  } catch {
    // It is told without.
  }
  return 'the function failed'
}

const maxTypeLength = 100
const maxErrorLength = 300

const textOf = (error: unknown) =>
  printable(error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, maxErrorLength)

const printable = (text: string) => text.replace(/[^\x20-\x7e]+/g, ' ')
