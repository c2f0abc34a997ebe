import { createHmac } from 'node:crypto'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { NotifyReceiver } from '../../sdk/src/notify/receiver.ts'

/** A request as a sender makes it. */
export type Sent = { method?: string; headers?: Record<string, string>; body?: Uint8Array | string }

/** Brings a request to a receiver in one of the ways in which requests come, and its answer back. */
export type Way = (receiver: NotifyReceiver, sent: Sent) => Promise<{ status: number; body: string; allow?: unknown }>

export const secretBytes = Buffer.alloc(32, 7)
export const secret = `whsec_${secretBytes.toString('base64')}`
export const nowMs = Date.UTC(2026, 10, 30)
export const clock = { now: () => nowMs }

export const hintOf = (...entries: [groupName: string, queueId: number][]) =>
  JSON.stringify({
    lan: 'java',
    sdkVersion: '5.5.1',
    clientIp: '10.0.0.5',
    msgNotifyDtos: entries.map(([consumerGroupName, queueId]) => ({ queueId, consumerGroupName })),
  })

/** Signs the bytes themselves, as the standard has it; by Node's own means, not by those of the receiver. */
export function sign(body: Uint8Array | string, { key = secretBytes, atMs = nowMs, webhookId = 'msg_1' } = {}) {
  const timestamp = String(Math.floor(atMs / 1000))
  const signature = createHmac('sha256', key).update(`${webhookId}.${timestamp}.`).update(body).digest('base64')
  return { 'webhook-id': webhookId, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}

const overHttp: Way = async (receiver, { method = 'POST', headers = {}, body = '' }) => {
  const server = http.createServer(receiver.node)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  try {
    return await new Promise((resolve, reject) => {
      const request = http.request({ port, host: '127.0.0.1', method, headers, agent: false }, async response => {
        let text = ''
        for await (const chunk of response.setEncoding('utf8')) text += chunk
        resolve({ status: response.statusCode ?? 0, body: text, allow: response.headers.allow })
      })
      request.on('error', reject)
      request.end(body)
    })
  } finally {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
}

const overFetch: Way = async (receiver, { method = 'POST', headers = {}, body = '' }) => {
  const given = method === 'GET' ? {} : { body }
  const response = await receiver.fetch(new Request('http://localhost/mq/client/notify', { method, headers, ...given }))
  return { status: response.status, body: await response.text(), allow: response.headers.get('allow') ?? undefined }
}

const overLambda =
  (toEvent: (sent: Required<Sent>) => object): Way =>
  async (receiver, { method = 'POST', headers = {}, body = '' }) => {
    const answer = await receiver.lambda(JSON.parse(JSON.stringify(toEvent({ method, headers, body }))))
    return { status: answer.statusCode, body: answer.body, allow: answer.headers.allow }
  }

const asBase64 = (body: Uint8Array | string) => ({ body: Buffer.from(body).toString('base64'), isBase64Encoded: true })
const asText = (body: Uint8Array | string) => ({ body: Buffer.from(body).toString(), isBase64Encoded: false })
const capitalised = (headers: Record<string, string>) =>
  Object.entries(headers).map(
    ([name, value]) => [name.replace(/\b\w/g, letter => letter.toUpperCase()), value] as const,
  )

/** Ways that carry any bytes. */
export const binaryWays: Record<string, Way> = {
  'node:http': overHttp,
  'Request and Response': overFetch,
  'API Gateway 2.0 with base64': overLambda(({ method, headers, body }) => ({
    version: '2.0',
    requestContext: { http: { method } },
    headers,
    ...asBase64(body),
  })),
  'API Gateway 1.0 with base64': overLambda(({ method, headers, body }) => ({
    httpMethod: method,
    headers: Object.fromEntries(capitalised(headers)),
    ...asBase64(body),
  })),
}

export const ways: Record<string, Way> = {
  ...binaryWays,
  'API Gateway 2.0': overLambda(({ method, headers, body }) => ({
    version: '2.0',
    requestContext: { http: { method } },
    headers,
    ...asText(body),
  })),
  'lists of header values': overLambda(({ method, headers, body }) => ({
    httpMethod: method,
    headers: null,
    multiValueHeaders: Object.fromEntries(capitalised(headers).map(([name, value]) => [name, [value]])),
    ...asText(body),
  })),
}
