import assert from 'node:assert/strict'
import { afterEach, mock, suite, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { serveSockets } from '../webhook/hooks.ts'
import { hints, openScene, serveTarget } from './notify-setup.ts'

type Scene = Awaited<ReturnType<typeof openScene>>
let scene: Scene
const open = async (...args: Parameters<typeof openScene>) => {
  scene = await openScene(...args)
  return scene
}
afterEach(() => scene.close())

suite('a webhook of a group', () => {
  test('is told of a queue that has got messages, in the words of PMQ, signed', async () => {
    const { put, publish, settle, queueIds, deliveries, target } = await open()
    const hook = await serveTarget()
    const { secret = '' } = await put('hook', { url: hook.url })
    await publish(queueIds[1])
    await settle()
    const [first = 0, second = 0] = queueIds
    assert.deepEqual(hook.bodies(), [hints(second)])
    const [{ text, headers, id } = assert.fail()] = hook.got
    new Webhook(secret).verify(text, headers as Record<string, string>)
    assert.partialDeepStrictEqual(await deliveries(), [
      { deliveryId: id, outcome: 'succeeded', what: 'hint', queueIds: [second], status: 204 },
    ])
    assert.equal((await target()).state.status, 'active')
    scene.clock.advance(100)
    await publish(first)
    await settle()
    assert.deepEqual(hook.bodies(), [hints(second), hints(first)])
  })

  test('is told of nothing where the topic has no group with targets, which then says nothing on the bus', async () => {
    const { publish, notices, put, service } = await open()
    await publish()
    assert.deepEqual(notices(), [])
    await put('hook', { url: 'http://127.0.0.1:9/' })
    await service.call('removeTarget', undefined, { groupName: 'billing', targetName: 'hook' })
    await scene.settle()
    await publish()
    assert.deepEqual(notices(), [])
  })

  test('is told once more after the last of many appends within a moment', async () => {
    const { put, publish, pass, queueIds } = await open()
    const hook = await serveTarget()
    await put('hook', { url: hook.url })
    for (let i = 0; i < 50; i++) await publish()
    const before = hook.got.length
    await pass(3_000)
    assert.ok(hook.got.length >= 2 && hook.got.length <= 8, `${hook.got.length} hints`)
    assert.ok(hook.got.length > before)
    assert.ok(hook.bodies().every(body => JSON.stringify(body) === JSON.stringify(hints(queueIds[0] ?? 0))))
  })

  test('is told of all queues in one, of those that come within its gap', async () => {
    const { put, publish, pass, settle, queueIds } = await open({ queues: 5 })
    const hook = await serveTarget()
    await put('hook', { url: hook.url, minGapMs: 60_000 })
    await publish(queueIds[0])
    await settle()
    for (const queueId of queueIds) await publish(queueId)
    await pass(70_000)
    const [first = 0] = queueIds
    assert.deepEqual(hook.bodies(), [hints(first), hints(...queueIds)])
  })

  test('is told when messages are due that their subscription delays', async () => {
    const { put, publish, pass, settle, queueIds } = await open({ settings: { delayProcessTimeSeconds: 600 } })
    const hook = await serveTarget()
    await put('hook', { url: hook.url })
    await publish()
    await settle()
    await pass(590_000)
    assert.deepEqual(hook.bodies(), [])
    await pass(12_000)
    assert.deepEqual(hook.bodies(), [hints(queueIds[0] ?? 0)])
    await pass(3_600_000)
    assert.equal(hook.got.length, 1)
  })

  test('is told again under the same id and with the same text while it fails, and of what has come meanwhile', async () => {
    const { put, publish, pass, settle, queueIds, target, deliveries } = await open()
    let status = 500
    const hook = await serveTarget(() => status)
    await put('hook', { url: hook.url })
    await publish(queueIds[0])
    await settle()
    for (let i = 0; i < 20; i++) await publish(queueIds[1])
    await settle()
    assert.equal(hook.got.length, 1, 'a failing target is left alone')
    assert.partialDeepStrictEqual((await target()).state, { status: 'failing', failures: 1 })
    await pass(6_000)
    assert.equal(hook.got.length, 2)
    await pass(60_000)
    const tries = hook.got.length
    assert.ok(tries >= 4 && tries <= 5, `${tries} tries within a minute`)
    assert.equal(new Set(hook.got.map(({ id, text }) => id + text)).size, 1)
    status = 200
    await pass(300_000)
    assert.equal((await target()).state.status, 'active')
    const [again, rest, ...more] = hook.got.slice(tries)
    assert.equal(again?.id, hook.got[0]?.id)
    assert.deepEqual([rest?.json, more], [hints(queueIds[1] ?? 0), []])
    assert.notEqual(rest?.id, again?.id)
    const [newest, , failed] = await deliveries()
    assert.deepEqual(
      [newest?.outcome, failed?.outcome, failed?.status, failed?.error],
      ['succeeded', 'failed', 500, 'the target answered 500'],
    )
  })

  test('is disabled when it has failed for a day, and told of what waits when an operator enables it', async () => {
    const { put, publish, pass, target, service, queueIds } = await open()
    let status = 503
    const hook = await serveTarget(() => status)
    await put('hook', { url: hook.url })
    await publish()
    await pass(86_400_000)
    await pass(600_000)
    assert.partialDeepStrictEqual((await target()).state, { status: 'disabled', disabledBy: 'failures' })
    const tries = hook.got.length
    assert.ok(tries > 100 && tries < 400, `${tries} tries in a day`)
    await publish()
    await pass(3_600_000)
    assert.equal(hook.got.length, tries)
    status = 200
    await service.call('enableTarget', undefined, { groupName: 'billing', targetName: 'hook' })
    await pass(1_000)
    assert.deepEqual(hook.bodies().slice(tries), [hints(queueIds[0] ?? 0)])
    assert.equal((await target()).state.status, 'active')
  })

  test('is disabled at once when it answers that it is gone', async () => {
    const { put, publish, settle, target } = await open()
    const hook = await serveTarget(() => 410)
    await put('hook', { url: hook.url })
    await publish()
    await settle()
    assert.partialDeepStrictEqual((await target()).state, { status: 'disabled', disabledBy: 'failures' })
  })

  test('is not followed elsewhere', async () => {
    const { put, publish, settle, deliveries } = await open()
    const elsewhere = await serveTarget()
    const hook = await serveTarget(() => outgoing => outgoing.writeHead(307, { location: elsewhere.url }).end())
    await put('hook', { url: hook.url })
    await publish()
    await settle()
    assert.deepEqual([hook.got.length, elsewhere.got.length], [1, 0])
    assert.equal((await deliveries())[0]?.error, 'the target answered 307')
  })

  test('keeps nobody waiting who hangs, drips, closes, or answers ten megabytes', async () => {
    const { put, publish, invoke, notices, deliveries, queueIds } = await open()
    const silent = await serveSockets(() => undefined)
    const closing = await serveSockets(socket => socket.destroy())
    const large = await serveTarget(() => outgoing => outgoing.end('<b>'.repeat(3_500_000)))
    const dripping = await serveTarget(() => outgoing => {
      outgoing.writeHead(200)
      outgoing.write('x')
    })
    const { promise: told, resolve: tell } = Promise.withResolvers<void>()
    const good = await serveTarget(() => {
      tell()
      return 200
    })
    for (const [name, { url }] of Object.entries({ silent, closing, large, dripping, good })) await put(name, { url })
    await publish()
    const event = notices().map(({ type, ...detail }) => ({ 'detail-type': type, detail }))[0]
    const handling = invoke(event ?? {})
    // While the others have not answered.
    await told
    assert.deepEqual(good.bodies(), [hints(queueIds[0] ?? 0)])
    await handling
    const outcomes = await Promise.all(
      ['silent', 'closing', 'large', 'dripping', 'good'].map(async name => (await deliveries(name))[0]),
    )
    assert.deepEqual(
      outcomes.map(each => each?.outcome),
      ['failed', 'failed', 'succeeded', 'failed', 'succeeded'],
    )
    const { answer = '' } = outcomes[2] ?? {}
    assert.ok(answer.startsWith('<b><b>') && Buffer.byteLength(answer) <= 1_024)
  })

  test('is told by all who hear the same, and harm nothing', async () => {
    const { put, publish, settle, invoke, notices, queueIds } = await open()
    const hook = await serveTarget()
    await put('hook', { url: hook.url, minGapMs: 0 })
    await publish()
    const [event] = notices().map(({ type, ...detail }) => ({ 'detail-type': type, detail }))
    for (let i = 0; i < 5; i++) await invoke(event ?? {})
    await settle()
    assert.ok(hook.got.length >= 5)
    assert.ok(hook.bodies().every(body => JSON.stringify(body) === JSON.stringify(hints(queueIds[0] ?? 0))))
  })

  test('and its secret and its answer are in no line of the log', async () => {
    const lines: string[] = []
    const methods = (['log', 'warn', 'error'] as const).map(method =>
      mock.method(console, method, (...args: unknown[]) => void lines.push(args.join(' '))),
    )
    const { put, publish, pass } = await open()
    const hook = await serveTarget(() => outgoing => outgoing.writeHead(500).end('the answer'))
    const { secret = '' } = await put('hook', { url: `${hook.url}?key=abcdef` })
    await publish()
    await pass(30_000)
    for (const method of methods) method.mock.restore()
    for (const hidden of [secret.slice(6), 'the answer', 'abcdef'])
      assert.ok(!lines.join('\n').includes(hidden), hidden)
  })

  test('can be tried by an operator, also while it is disabled', async () => {
    const { put, service, settle, deliveries, target } = await open()
    const hook = await serveTarget()
    await put('hook', { url: hook.url })
    const ref = { groupName: 'billing', targetName: 'hook' }
    await service.call('disableTarget', undefined, ref)
    const { deliveryId } = await service.call('testTarget', undefined, ref)
    await settle()
    assert.deepEqual(hook.bodies(), [hints()])
    assert.partialDeepStrictEqual(await deliveries(), [{ deliveryId, what: 'test', outcome: 'succeeded' }])
    assert.equal((await target()).state.status, 'disabled')
  })

  test('that was removed is sent nothing by a job that comes later', async () => {
    const { put, publish, settle, pass, service } = await open()
    const hook = await serveTarget(() => 500)
    await put('hook', { url: hook.url })
    await publish()
    await settle()
    await service.call('removeTarget', undefined, { groupName: 'billing', targetName: 'hook' })
    await pass(60_000)
    assert.equal(hook.got.length, 1)
  })

  test('is told of failures when their retry is due, and of those that are resent at once', async () => {
    const { put, pass, settle, service, queueIds } = await open({ settings: { retryDelaySeconds: 30, retryCount: 1 } })
    const hook = await serveTarget()
    await put('hook', { url: hook.url })
    const failTopic = (await service.call('getTopicView', undefined, { topicName: 'billing_orders_fail' })).queues
    const fail = (retryCount: number) =>
      service.call('publishAndUpdateResultFailMsg', {
        queueId: queueIds[0],
        failMsg: { topicName: 'billing_orders_fail', msgs: [{ id: 1, body: 'm', retryCount }] },
      })
    await fail(1)
    await settle()
    await pass(25_000)
    assert.deepEqual(hook.bodies(), [])
    await pass(10_000)
    assert.equal(hook.got.length, 1)
    const told = JSON.stringify(hook.bodies()[0])
    assert.ok(failTopic.some(({ queueId }) => told === JSON.stringify(hints(queueId))))
    await fail(2)
    await pass(120_000)
    hook.got.length = 0
    await service.call('resendFailed', { of: 'all' }, { groupName: 'billing', topicName: 'orders' })
    await settle()
    assert.equal(hook.got.length, 1)
  })
})
