import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'

/** Listens on a free port of this machine alone; returns `host:port`. */
export async function listen(server: Server | HttpServer): Promise<string> {
  // A connection of a client that rests must be there when it goes on.
  if ('keepAliveTimeout' in server) server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}
