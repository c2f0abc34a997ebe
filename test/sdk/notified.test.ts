import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createNotifyReceiver } from '../../sdk/src/notify/receiver.ts'
import { recorder, setUp, upTo } from './consumer-setup.ts'
import { settle } from './manual-clock.ts'
import { hintOf, secret, sign, clock as signatureClock } from './notify-setup.ts'

/** A consumer whose queues have been empty for so long that its pauses are at their longest, on a service that holds no pull. */
async function idleConsumer() {
  const { consumer, ...scene } = setUp({ settings: { maxPullTime: 60 } })
  const { seen, handler } = recorder()
  const made = consumer(handler, { maxPullWaitMs: 0, pullDeltaTimeMs: 60_000 })
  const receiver = createNotifyReceiver({ secrets: [secret], onNotify: made.client.notified, clock: signatureClock })
  await made.start()
  await scene.clock.advance(150_000)
  const pulls = () => scene.service.count('pullData')
  const notify = async (...entries: Parameters<typeof hintOf>) => {
    const body = hintOf(...entries)
    const headers = sign(body)
    const { status } = await receiver.fetch(new Request('http://localhost/', { method: 'POST', headers, body }))
    assert.equal(status, 200)
    await settle()
  }
  return { ...scene, ...made, seen, pulls, notify }
}

suite('a consumer that is notified', () => {
  test('has the message at once, without waiting for its pause to end', async () => {
    const { log, seen, notify, stop } = await idleConsumer()
    log.put(1, ['a', 'b'])
    await settle()
    assert.deepEqual(seen, [])
    await notify(['billing', 1])
    assert.deepEqual(seen, upTo(1, 2))
    await stop()
  })

  test('handles each message once, however often the hint comes', async () => {
    const { clock, log, seen, notify, committed, stop } = await idleConsumer()
    log.put(1, ['a', 'b', 'c'])
    for (let time = 0; time < 5; time++) await notify(['billing', 1], ['billing', 1])
    await clock.advance(120_000)
    assert.deepEqual(seen, upTo(1, 3))
    assert.deepEqual(committed(), [3, 0])
    await stop()
  })

  test('asks for nothing where the hint names queues that it does not have', async () => {
    const { pulls, notify, stop } = await idleConsumer()
    const before = pulls()
    await notify(['billing', 99], ['shipping', 98])
    assert.equal(pulls(), before)
    await stop()
  })

  test('pulls only the queues that the hint names', async () => {
    const { service, pulls, notify, stop } = await idleConsumer()
    const before = pulls()
    await notify(['billing', 2])
    assert.deepEqual(
      service.requests
        .filter(({ operation }) => operation === 'pullData')
        .slice(before)
        .map(({ request }) => request.queueId),
      [2],
    )
    await stop()
  })

  test('may be stopped, and its client closed: the hint does nothing', async () => {
    const { log, seen, notify, stop, client } = await idleConsumer()
    log.put(1, ['a'])
    await stop()
    await notify(['billing', 1])
    await client.close()
    await notify(['billing', 1])
    assert.deepEqual(seen, [])
  })
})
