import type { IncomingMessage } from 'node:http'
import { type EndpointName, endpoints } from '../../core/protocol/endpoints.ts'
import { type Client, createClient } from '../../sdk/src/client.ts'
import { PmqClientError } from '../../sdk/src/errors.ts'
import { readHttpAnswer } from '../../sdk/src/http-answer.ts'
import type { Transport } from '../../sdk/src/transport.ts'
import { seededRandom } from '../support/random.ts'
import type { Service } from './service.ts'

const byPath = new Map<string, EndpointName>(
  Object.entries(endpoints).map(([name, { path }]) => [path, name as EndpointName]),
)

/** The endpoint of a path that the SDK asks. */
export function nameOfPath(path: string): EndpointName {
  const name = byPath.get(path)
  if (name === undefined) throw new Error(`there is no ${path}`)
  return name
}

/** The SDK's client, on a service in the same process and its clock. `through` stands between the two. */
export function openNodeClient(
  service: Service,
  seed = 1,
  through: (transport: Transport) => Transport = same => same,
): Client {
  const transport: Transport = (path, request, { signal }) => {
    const name = nameOfPath(path)
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(new PmqClientError('aborted', `${name} was given up`)))
    })
    const answered = service.send(name, request).then(({ status: statusCode, headers, text }) => {
      return readHttpAnswer({ statusCode, headers } as IncomingMessage, [Buffer.from(text)], path, service.clock.now())
    })
    return Promise.race([answered, aborted])
  }
  return createClient({
    transport: through(transport),
    clock: service.clock,
    random: seededRandom(seed),
    onEvent: () => {},
  })
}
