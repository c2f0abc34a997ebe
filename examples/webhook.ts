// A webhook that is handed messages, and says which of them it has failed to handle. The host has to be started with
// --allow-local-targets, since it is on this machine.
// prints: handled an order of ann
// prints: failed with an order of bob
// prints: handled an order of eve
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from 'pmq-sdk'
import { Webhook } from 'standardwebhooks'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'pushed', queues: 1, groupName: 'pushes', mode: 'claimed', settings: { threadSize: 1 } })
const told = Promise.withResolvers<void>()
let secret = ''

// #region webhook
const server = createServer(async (incoming, outgoing) => {
  let text = ''
  for await (const chunk of incoming.setEncoding('utf8')) text += chunk
  try {
    new Webhook(secret).verify(text, incoming.headers as Record<string, string>)
  } catch {
    return outgoing.writeHead(401).end()
  }
  const { msgs }: { msgs: { id: number; body: string }[] } = JSON.parse(text)
  const failIds = msgs.filter(({ body }) => !handle(body)).map(({ id }) => id)
  outgoing.end(JSON.stringify({ suc: true, failIds })) // those come again in a minute, and the others are done
}).listen(0, '127.0.0.1')
// #endregion
await once(server, 'listening')

function handle(body: string): boolean {
  const isHandled = !body.endsWith('bob')
  console.log(`${isHandled ? 'handled' : 'failed with'} ${body}`)
  if (body.endsWith('eve')) told.resolve()
  return isHandled
}

// What an operator does once. The answer shows the secret, and no other one does.
const { port } = server.address() as AddressInfo
const answer = await fetch(`${url}/api/admin/groups/pushes/targets/shop`, {
  method: 'PUT',
  body: JSON.stringify({ url: `http://127.0.0.1:${port}/orders`, delivers: 'messages' }),
})
if (!answer.ok) throw new Error(await answer.text())
secret = ((await answer.json()) as { secret: string }).secret

const client = createClient({ url })
await client.publish(
  'pushed',
  ['ann', 'bob', 'eve'].map(name => ({ body: `an order of ${name}` })),
)
await told.promise
await fetch(`${url}/api/admin/groups/pushes/targets/shop`, { method: 'DELETE' })
await client.close()
server.closeAllConnections()
server.close()
