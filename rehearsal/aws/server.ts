import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Credentials } from '../lambda/function.ts'
import { type AwsAnswer, type AwsCall, awsError, notRehearsed } from './call.ts'

/** An AWS service, by the name that signatures have it under. */
export type Services = Record<string, (call: AwsCall) => Promise<AwsAnswer>>

export type AwsServer = {
  server: Server
  /** Whoever signs with these is known from now on. */
  admit(credentials: Credentials): void
}

/**
 * What the functions take for AWS: one address for all services. Which one is meant, and who asks, is in the signature of
 * a request. The signature itself is not checked: nobody else knows the keys, which are random.
 */
export function createAwsServer(services: Services, onNotRehearsed: (caller: string, what: string) => void): AwsServer {
  const admitted = new Map<string, Credentials>()
  const server = createServer(async (request, response) => {
    const { status, headers, body } = await answer(request).catch((error: Error) => {
      // An instance that was ended in the middle of its request waits for no answer.
      if (request.complete) console.error(error)
      return awsError(500, 'InternalFailure', `the rehearsal has failed: ${error.message}`)
    })
    response.writeHead(status, {
      'content-type': 'application/x-amz-json-1.0',
      'content-length': Buffer.byteLength(body),
      ...headers,
    })
    response.end(body)
  })

  async function answer(request: IncomingMessage): Promise<AwsAnswer> {
    const body = await readAll(request)
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    const [, key = '', service = ''] =
      /Credential=([^/]+)\/[^/]+\/[^/]+\/([^/]+)\//.exec(headers.authorization ?? '') ?? []
    const credentials = admitted.get(key)
    if (!credentials || headers['x-amz-security-token'] !== credentials.sessionToken) {
      return awsError(403, 'UnrecognizedClientException', 'The security token included in the request is invalid.')
    }
    const call: AwsCall = {
      caller: credentials.caller,
      method: request.method ?? 'GET',
      path: decodeURIComponent((request.url ?? '/').split('?', 1)[0] ?? '/'),
      operation: headers['x-amz-target']?.replace(/^.*\./, '') ?? '',
      headers,
      body,
    }
    const answered = (await services[service]?.(call)) ?? notRehearsed(`the service ${service}`)
    if (answered.headers?.['x-amzn-errortype'] === 'UnknownOperationException') {
      onNotRehearsed(call.caller.name, `${service}:${call.operation || `${call.method} ${call.path}`}`)
    }
    return answered
  }

  return { server, admit: credentials => admitted.set(credentials.accessKeyId, credentials) }
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}
