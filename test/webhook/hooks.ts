import http from 'node:http'
import https from 'node:https'
import net, { type AddressInfo, type Server, type Socket } from 'node:net'
import { after } from 'node:test'
import { localTargets, type NetworkPolicy } from '../../core/notify/network-policy.ts'
import type { Clock } from '../../core/protocol/clock.ts'
import type { Resolve } from '../../functions/edge/webhook/resolve.ts'
import { createWebhookSender, type WebhookRequest } from '../../functions/edge/webhook/sender.ts'

export const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
export const otherSecret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`

/** What has been opened since is ended with the file's tests. */
const opened = new Set<() => void>()
after(() => {
  for (const end of opened) end()
})

/** Where a name leads: any to this machine, unless it is told otherwise. */
export const toHere: Resolve = async () => ['127.0.0.1']

type Options = { policy?: Partial<NetworkPolicy>; resolve?: Resolve; clock?: Clock }

/** A sender to this machine. */
export function openSender({ policy, resolve = toHere, clock }: Options = {}) {
  const sender = createWebhookSender({ ...localTargets, ...policy }, { resolve, ...(clock && { clock }) })
  opened.add(sender.close)
  return sender
}

/** A request that does not end by itself within a test. */
export function requestTo(url: string, more: Partial<WebhookRequest> = {}): WebhookRequest {
  return {
    url,
    secrets: [secret],
    deliveryId: 'd1',
    body: '{"a":1}',
    timeoutMs: 100_000,
    maxAnswerBytes: 1_000,
    ...more,
  }
}

/** A server of HTTP on this machine. */
export async function serveHttp(handler: http.RequestListener, options: http.ServerOptions = {}) {
  return listen(http.createServer(options, handler))
}

export async function serveHttps(handler: http.RequestListener, options: https.ServerOptions) {
  return listen(https.createServer(options, handler))
}

/** A server of whatever it wants. */
export async function serveSockets(onSocket: (socket: Socket) => void) {
  return listen(
    net.createServer(socket => {
      socket.on('error', () => undefined)
      onSocket(socket)
    }),
  )
}

/** The same, told of each request when all of it is there. */
export async function serveRaw(onRequest: (socket: Socket, request: string) => void) {
  return serveSockets(socket => {
    let text = ''
    socket.on('data', chunk => {
      text += chunk
      const [head = '', body = ''] = text.split('\r\n\r\n')
      if (body.length < Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.POSITIVE_INFINITY)) return
      const request = text
      text = ''
      onRequest(socket, request)
    })
  })
}

/** What has to be, sooner or later. */
export async function until(isSo: () => boolean) {
  while (!isSo()) await new Promise(resolve => setImmediate(resolve))
}

async function listen(server: Server) {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', socket => {
    connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  opened.add(close)
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}/hook`,
    close,
    /** How many have been made. */
    connections: () => connections,
    /** How many there are. */
    open: () => sockets.size,
  }
}
