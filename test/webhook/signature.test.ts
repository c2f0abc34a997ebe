import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { suite, test } from 'node:test'
import { createNotifyReceiver, type NotifyHint } from '../../sdk/src/notify/receiver.ts'
import { openSender, otherSecret, requestTo, secret, serveHttp } from './hooks.ts'

const hint = JSON.stringify({
  lan: 'pmq',
  sdkVersion: 'ü',
  clientIp: 'pmq',
  msgNotifyDtos: [{ queueId: 11, consumerGroupName: 'g1' }],
})

async function serveReceiver(secrets: string[]) {
  const seen: NotifyHint[] = []
  const receiver = createNotifyReceiver({ secrets, onNotify: hints => void seen.push(...hints) })
  return { seen, ...(await serveHttp((incoming, outgoing) => void receiver.node(incoming, outgoing))) }
}

async function statusOf(url: string, secrets: string[], body = hint) {
  const answer = await openSender().send(requestTo(url, { secrets, body }))
  return 'status' in answer ? answer.status : answer.outcome
}

suite('a webhook', () => {
  test('is taken by the SDK’s receiver that has one of its secrets, and by no other', async () => {
    const receiver = await serveReceiver([secret])
    assert.equal(await statusOf(receiver.url, [secret]), 200)
    assert.equal(await statusOf(receiver.url, [otherSecret, secret]), 200)
    assert.equal(await statusOf(receiver.url, [secret, otherSecret]), 200)
    assert.deepEqual(receiver.seen, Array(3).fill({ groupName: 'g1', queueIds: [11] }))
    assert.equal(await statusOf(receiver.url, [otherSecret]), 401)
    assert.equal(await statusOf(receiver.url, []), 401)
    assert.equal(receiver.seen.length, 3)
  })

  test('is known by its id when it is sent again, and has one signature for each secret', async () => {
    const seen: IncomingHttpHeaders[] = []
    const server = await serveHttp((incoming, outgoing) => {
      seen.push(incoming.headers)
      outgoing.end()
    })
    for (const deliveryId of ['d1', 'd1', 'd2'])
      await openSender().send(requestTo(server.url, { deliveryId, secrets: [secret, otherSecret] }))
    await openSender().send(requestTo(server.url, { secrets: [] }))
    assert.deepEqual(
      seen.map(headers => headers['webhook-id']),
      ['d1', 'd1', 'd2', 'd1'],
    )
    for (const headers of seen.slice(0, 3)) {
      assert.match(String(headers['webhook-signature']), /^v1,[\w+/]{43}= v1,[\w+/]{43}=$/)
      assert.match(String(headers['webhook-timestamp']), /^\d{10}$/)
    }
    assert.equal(seen[3]?.['webhook-signature'], undefined)
  })
})
