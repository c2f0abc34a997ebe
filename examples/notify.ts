// Takes the service's hints that there are messages, so that a consumer has them before its next pull.
// prints: without a signature: 401
// prints: billing may have messages in queue 7
// prints: with one: 200
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createNotifyReceiver } from 'pmq-sdk/notify'
import { Webhook } from 'standardwebhooks'

const secret = `whsec_${Buffer.from('a secret of at least 24 bytes').toString('base64')}`

// #region notify
const receiver = createNotifyReceiver({
  secrets: [secret],
  onNotify(hints) {
    // Of a program that consumes: client.notified(hints)
    for (const { groupName, queueIds } of hints) console.log(`${groupName} may have messages in queue ${queueIds}`)
  },
})
const server = createServer(receiver.node).listen(0, '127.0.0.1') // or receiver.fetch, receiver.lambda
// #endregion
await once(server, 'listening')
const { port } = server.address() as AddressInfo

// What the service does.
const body = JSON.stringify({ msgNotifyDtos: [{ consumerGroupName: 'billing', queueId: 7 }] })
const post = (headers: Record<string, string>) =>
  fetch(`http://127.0.0.1:${port}/mq/client/notify`, { method: 'POST', headers, body })

console.log(`without a signature: ${(await post({})).status}`)
const sentAt = new Date()
const answer = await post({
  'webhook-id': 'msg_1',
  'webhook-timestamp': `${Math.floor(sentAt.getTime() / 1000)}`,
  'webhook-signature': new Webhook(secret).sign('msg_1', sentAt, body),
})
console.log(`with one: ${answer.status}`)

server.closeAllConnections()
server.close()
