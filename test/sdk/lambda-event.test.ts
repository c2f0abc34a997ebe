import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { bodies, recorder, setUp } from './lambda-setup.ts'

let scene: Awaited<ReturnType<typeof setUp>>
afterEach(() => scene.service.close())

const hint = (consumerGroupName: string, ...queueIds: unknown[]) => ({
  msgNotifyDtos: queueIds.map(queueId => ({ queueId, consumerGroupName })),
})

describe('the event', () => {
  test('may be anything', async () => {
    scene = await setUp()
    const { invoke } = scene.lambda()
    const schedule = { source: 'aws.events', detail: {} }
    const events = [undefined, null, 7, 'now', [], {}, schedule, { msgNotifyDtos: 'no' }, { msgNotifyDtos: [] }]
    for (const event of [
      ...events,
      hint('billing', 'x', -1, null),
      { msgNotifyDtos: [null, { consumerGroupName: 'billing' }] },
    ]) {
      await scene.publish(bodies(1))
      assert.equal((await invoke(60_000, event)).handled, 1)
    }
  })

  test('names the queues that come first, and others follow', async () => {
    scene = await setUp({ queues: 6 })
    const { lambda, publish, queueIds } = scene
    for (const queueId of queueIds) await publish(bodies(1), queueId)
    const { seen, handler } = recorder()
    const named = queueIds.slice(3, 5)
    const { invoke, named: calls } = lambda({ maxQueues: 1, topics: { orders: handler } })
    const report = await invoke(60_000, hint('billing', named[0], named[1], named[0], 4711))
    assert.deepEqual(report, { handled: 6, failed: 0, queues: 6, isDrained: true })
    assert.deepEqual(
      seen.slice(0, 2).toSorted(),
      named.map(queueId => `${queueId}:1`),
    )
    assert.deepEqual(calls('claimQueues')[0]?.request.queueIds, [...named, 4711])
    assert.equal(calls('claimQueues').at(-1)?.request.queueIds, undefined)
  })

  test('that is a notification for other groups alone does nothing', async () => {
    scene = await setUp()
    const { lambda, publish, queueIds } = scene
    await publish(bodies(1))
    const { invoke, calls } = lambda()
    const report = await invoke(60_000, hint('shipping', queueIds[0]))
    assert.deepEqual(report, { handled: 0, failed: 0, queues: 0, isDrained: true })
    assert.equal(calls.length, 0)
    const { msgNotifyDtos: others } = hint('shipping', queueIds[0])
    const { msgNotifyDtos: ours } = hint('billing', queueIds[0])
    assert.equal((await invoke(60_000, { msgNotifyDtos: [...others, ...ours] })).handled, 1)
  })
})
