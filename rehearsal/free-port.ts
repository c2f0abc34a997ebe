import { once } from 'node:events'
import { createServer } from 'node:net'

/** A port that is free now. Somebody else may take it before it is used. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('the listener has no port')
  return address.port
}
