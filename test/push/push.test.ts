import assert from 'node:assert/strict'
import { afterEach, suite, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { otherSecret, secret } from '../webhook/hooks.ts'
import { asSecret, bodies, done, pushOf, serveTarget, setUp, targetAt } from './push-setup.ts'

let scene: Awaited<ReturnType<typeof setUp>>
afterEach(() => scene.service.close())
const open = async (...given: Parameters<typeof setUp>) => {
  scene = await setUp(...given)
  return scene
}

const drained = { failed: 0, isDrained: true }

suite('a push', () => {
  test('posts what there is, in order, commits it, and gives the queues up', async () => {
    const { service, publish, queueIds, committed, claimants } = await open()
    const [first = 0, second = 0] = queueIds
    await publish(bodies(3), first)
    await publish(bodies(2), second)
    const target = await serveTarget(() => done)
    const { run, posts } = pushOf(service)
    assert.deepEqual(await run(target.url), { ...drained, handled: 5 })
    assert.deepEqual(target.seen().toSorted(), [`${first}:1`, `${first}:2`, `${first}:3`, `${second}:1`, `${second}:2`])
    assert.deepEqual([await committed(), await claimants()], [[3, 2], []])
    assert.ok(posts.every(({ outcome, status, answer }) => outcome === 'done' && status === 200 && answer))
    assert.deepEqual(await run(target.url), { ...drained, handled: 0 })
    assert.equal(target.got.length, 5)
  })

  test('says what PMQ says of a message, and more in fields that its clients pass over', async () => {
    const { service, publish, queueIds } = await open({ queues: 1 })
    const message = { tag: 't', key: 'k', bizId: 'b', traceId: 'tr', head: { h: 'v"' } }
    await publish(['ü\u0001"'], queueIds[0], message)
    await publish(['plain'])
    const target = await serveTarget(() => done)
    await pushOf(service).run(target.url)
    const [first, second] = target.got.flatMap(({ msgs }) => msgs)
    assert.match(first?.insertTime ?? '', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}$/)
    const { insertTime } = first ?? assert.fail()
    const common = { topicName: 'orders', consumerGroupName: 'billing', sendIp: '10.9.8.7', queueId: queueIds[0] }
    assert.deepEqual(first, { ...common, ...message, id: 1, body: 'ü\u0001"', insertTime, retryCount: 0 })
    assert.deepEqual(second, {
      ...common,
      id: 2,
      bizId: '',
      head: {},
      body: 'plain',
      traceId: `${queueIds[0]}-2`,
      insertTime: second?.insertTime,
      retryCount: 0,
    })
  })

  test('is signed by each of the secrets', async () => {
    const { service, publish } = await open()
    await publish(['a'])
    const target = await serveTarget(() => done)
    await pushOf(service).run('', { target: targetAt(target.url, { secrets: [secret, otherSecret].map(asSecret) }) })
    const [{ text, headers } = assert.fail()] = target.got
    for (const known of [secret, otherSecret]) new Webhook(known).verify(text, headers as Record<string, string>)
    assert.throws(() => new Webhook(secret).verify(`${text} `, headers as Record<string, string>))
  })

  test('posts consumerBatchSize messages at once, and passes over what the tags leave out', async () => {
    const { service, publish, queueIds, committed } = await open({
      queues: 1,
      settings: { consumerBatchSize: 4, tag: 'wanted' },
    })
    for (let round = 0; round < 5; round++) {
      await publish(bodies(2), queueIds[0], { tag: 'wanted' })
      await publish(['other'], queueIds[0], { tag: 'other' })
    }
    const target = await serveTarget(() => done)
    assert.equal((await pushOf(service).run(target.url)).handled, 10)
    assert.deepEqual(
      target.got.map(({ msgs }) => msgs.map(({ id }) => id)),
      [
        [1, 2, 4, 5],
        [7, 8, 10, 11],
        [13, 14],
      ],
    )
    assert.deepEqual(await committed(), [15])
  })

  test('stays below what an invocation takes, however its messages are written', async () => {
    const { service, publish } = await open({ queues: 1, settings: { consumerBatchSize: 500 } })
    for (let message = 0; message < 6; message++) await publish(['\u0001'.repeat(256 * 1024)])
    await publish(bodies(400))
    for (let message = 0; message < 6; message++) await publish(['€'.repeat(87_000)])
    const target = await serveTarget(() => done)
    assert.equal((await pushOf(service).run(target.url)).handled, 412)
    const sizes = target.got.map(({ text }) => Buffer.byteLength(text))
    assert.ok(Math.max(...sizes) < 6 * 1024 * 1024, `a request has ${Math.max(...sizes)} bytes`)
    assert.ok(target.got.length < 12, `there are ${target.got.length} requests`)
  })

  test('begins with the queues that it is told of', async () => {
    const { service, publish, queueIds } = await open({ queues: 20 })
    for (const queueId of queueIds) await publish(['a'], queueId)
    const target = await serveTarget(() => done)
    const hints = [queueIds[17] ?? 0, queueIds[4] ?? 0]
    await pushOf(service).run(target.url, { hints })
    assert.deepEqual(new Set(target.seen().slice(0, 2)), new Set(hints.map(queueId => `${queueId}:1`)))
    assert.equal(target.got.length, 20)
  })

  test('that is told of the same queues five times at once hands on each message once', async () => {
    const { service, publish, queueIds, lag } = await open({ queues: 4 })
    for (const queueId of queueIds) await publish(bodies(25), queueId)
    const target = await serveTarget(() => done)
    const { run } = pushOf(service)
    const reports = await Promise.all(Array.from({ length: 5 }, () => run(target.url, { hints: queueIds })))
    assert.equal(target.seen().length, 100)
    assert.equal(new Set(target.seen()).size, 100)
    assert.equal(
      reports.reduce((sum, { handled }) => sum + handled, 0),
      100,
    )
    assert.equal(await lag(), 0)
  })

  test('leaves what is not due to a later run, and says when that is to be', async () => {
    const { service, publish, later } = await open({ queues: 2, settings: { delayProcessTimeSeconds: 60 } })
    await publish(bodies(3))
    const publishedAtMs = service.clock.now()
    const target = await serveTarget(() => done)
    const { run } = pushOf(service)
    const { nextDueAtMs = 0, ...rest } = await run(target.url)
    assert.deepEqual(rest, { ...drained, handled: 0 })
    // By two clocks, which are not read at the same moment.
    assert.ok(nextDueAtMs < publishedAtMs + 61_000 && nextDueAtMs > publishedAtMs + 50_000)
    later()
    assert.deepEqual(await run(target.url), { ...drained, handled: 3 })
  })

  test('does nothing for a group that is not there, and for none of alarms', async () => {
    const { service } = await open()
    const target = await serveTarget(() => done)
    const { run } = pushOf(service)
    const nobody = targetAt(target.url, { owner: { groupName: 'nobody' } })
    assert.deepEqual(await run('', { target: nobody }), { ...drained, handled: 0 })
    await assert.rejects(run('', { target: targetAt(target.url, { owner: 'alarms' }) }), /one of alarms/)
    assert.equal(target.got.length, 0)
  })

  test('keeps two messages of a key apart where calls run side by side', async () => {
    const { service, publish, queueIds } = await open({ queues: 1, settings: { threadSize: 5, consumerBatchSize: 5 } })
    for (let round = 0; round < 6; round++) {
      for (const key of ['a', 'b', 'c']) await publish([`${key}${round}`], queueIds[0], { key })
    }
    const running = new Map<string, number>()
    let together = 0
    const target = await serveTarget(async ({ msgs }) => {
      for (const { key = '' } of msgs) running.set(key, (running.get(key) ?? 0) + 1)
      together = Math.max(together, ...running.values())
      await new Promise(setImmediate)
      for (const { key = '' } of msgs) running.set(key, (running.get(key) ?? 0) - 1)
      return done
    })
    assert.equal((await pushOf(service).run(target.url)).handled, 18)
    assert.equal(together, 1)
    for (const key of ['a', 'b', 'c'])
      assert.deepEqual(
        target.bodies().filter(body => body.startsWith(key)),
        [0, 1, 2, 3, 4, 5].map(round => `${key}${round}`),
      )
  })

  test('hands on what was pulled before its retention was over, and passes over what is gone', async () => {
    const { service, publish, queueIds, committed } = await open({ queues: 1 })
    await publish(bodies(2))
    const target = await serveTarget(() => {
      service.clock.step(400 * 86_400_000)
      return done
    })
    assert.equal((await pushOf(service).run(target.url)).handled, 2)
    assert.deepEqual(await committed(), [2])
    await publish(['old'])
    service.clock.step(400 * 86_400_000)
    await publish(['new'], queueIds[0])
    await pushOf(service).run(target.url)
    assert.deepEqual(target.bodies(), ['m1', 'm2', 'new'])
    assert.deepEqual(await committed(), [4])
  })
})

suite('the id of a delivery', () => {
  test('is the same when the same messages are handed on again, and another one for others', async () => {
    const { service, publish } = await open({ queues: 1, settings: { consumerBatchSize: 2 } })
    await publish(bodies(4))
    let isAway = true
    const target = await serveTarget(() => (isAway ? 503 : done))
    const { run } = pushOf(service)
    await run(target.url)
    isAway = false
    await run(target.url)
    const ids = target.got.map(({ headers }) => headers['webhook-id'])
    assert.equal(ids.length, 3)
    assert.equal(ids[0], ids[1])
    assert.notEqual(ids[1], ids[2])
    assert.match(String(ids[0]), /^push_[\w-]{24}$/)
  })
})
