import assert from 'node:assert/strict'
import { afterEach, suite, test } from 'node:test'
import { freshState } from '../../core/notify/target.ts'
import { openSender, serveHttp, until } from '../webhook/hooks.ts'
import { bodies, done, pushOf, type Reply, serveTarget, setUp, targetAt } from './push-setup.ts'

let scene: Awaited<ReturnType<typeof setUp>>
afterEach(() => scene.service.close())
const open = async (...given: Parameters<typeof setUp>) => {
  scene = await setUp(...given)
  return scene
}

suite('a target that takes nothing', () => {
  const replies: [what: string, reply: Reply, retryAfterMs: number][] = [
    ['429', 429, 5_000],
    ['503', 503, 5_000],
    ['429 and in 20 s', outgoing => outgoing.writeHead(429, { 'retry-after': '20' }).end(), 20_000],
    ['503 and now', outgoing => outgoing.writeHead(503, { 'retry-after': '0' }).end(), 1_000],
    ['503 and before', outgoing => outgoing.writeHead(503, { 'retry-after': '-60' }).end(), 1_000],
    ['503 and next year', outgoing => outgoing.writeHead(503, { 'retry-after': '31536000' }).end(), 900_000],
    ['503 and one day', outgoing => outgoing.writeHead(503, { 'retry-after': 'one day' }).end(), 5_000],
    ['503 and what looks like an answer', outgoing => outgoing.writeHead(503).end(JSON.stringify(done)), 5_000],
  ]
  for (const [what, reply, retryAfterMs] of replies) {
    test(`answers ${what}: nothing is counted, nothing committed, and the run ends`, async () => {
      const { service, publish, committed, claimants, failures } = await open({
        settings: { consumerBatchSize: 2, retryCount: 0 },
      })
      await publish(bodies(10))
      const target = await serveTarget(() => reply)
      const { run, posts } = pushOf(service)
      const { unavailable, ...report } = await run(target.url)
      assert.deepEqual(report, { handled: 0, failed: 0, isDrained: false })
      assert.equal(unavailable?.retryAfterMs, retryAfterMs)
      assert.match(unavailable?.error ?? '', /^the target answered (429|503)$/)
      assert.deepEqual([await committed(), await claimants(), await failures()], [[0, 0], [], []])
      assert.deepEqual([target.got.length, posts.map(({ outcome }) => outcome)], [1, ['not_started']])
    })
  }

  test('does not listen, has no certificate, or may not be reached at all: the same', async () => {
    const { service, publish, committed, failures } = await open({ settings: { retryCount: 0 } })
    await publish(bodies(3))
    const gone = await serveHttp(() => undefined)
    gone.close()
    const plain = await serveHttp((_, outgoing) => outgoing.end())
    const urls = [
      [gone.url, /ECONNREFUSED/],
      [`https://hooks.example.com:${plain.port}/`, /./],
      ['http://169.254.169.254/', /no target/],
      ['http://user@127.0.0.1/', /user name/],
    ] as const
    for (const [url, why] of urls) {
      const { unavailable, ...report } = await pushOf(service).run(url)
      assert.deepEqual(report, { handled: 0, failed: 0, isDrained: false })
      assert.match(unavailable?.error ?? '', why)
    }
    assert.deepEqual([await committed(), await failures()], [[0, 0], []])
  })

  test('for days loses nothing and counts nothing, and its messages are handed on when it is back', async () => {
    const { service, publish, queueIds, failures, later, lag } = await open({ queues: 3, settings: { retryCount: 0 } })
    for (const queueId of queueIds) await publish(bodies(10), queueId)
    let isAway = true
    const target = await serveTarget(() => (isAway ? 503 : done))
    const push = pushOf(service)
    const failing = targetAt(target.url, { state: { ...freshState, failures: 7 } })
    const run = () => push.run('', { target: failing })
    for (let hour = 0; hour < 50; hour++) {
      const { handled, failed, unavailable } = await run()
      assert.deepEqual([handled, failed, unavailable?.retryAfterMs], [0, 0, 5_000])
      later(3_600)
    }
    assert.deepEqual([await failures(), await lag()], [[], 30])
    isAway = false
    assert.equal((await run()).handled, 30)
    assert.deepEqual([await failures(), await lag()], [[], 0])
    // One that has failed before is tried with one call, whatever waits.
    assert.equal(target.got.length, 50 + 30)
  })

  test('in the middle leaves done what is done, and what was begun beside it counts as it ends', async () => {
    const { service, publish, queueIds, committed, failures } = await open({ queues: 3, settings: { retryCount: 1 } })
    const [good = 0, bad = 0, away = 0] = queueIds
    await publish(bodies(2), good)
    await publish(bodies(2), bad)
    await publish(bodies(2), away)
    const holding: (() => void)[] = []
    const target = await serveTarget(async ({ msgs }) => {
      const [{ queueId } = assert.fail()] = msgs
      // All three are begun. One takes nothing; the others end only when the run knows that.
      if (queueId === away) {
        await until(() => holding.length === 2)
        setTimeout(() => {
          for (const release of holding) release()
        }, 100)
        return 503
      }
      await new Promise<void>(resolve => holding.push(resolve))
      return queueId === good ? done : 500
    })
    const { run, posts } = pushOf(service)
    const { unavailable, handled, failed, isDrained } = await run(target.url)
    assert.deepEqual([handled, failed, isDrained, unavailable?.error], [1, 1, false, 'the target answered 503'])
    assert.equal(target.got.length, 3, 'more was begun when it was known to take nothing')
    assert.deepEqual(posts.map(({ outcome }) => outcome).toSorted(), ['done', 'failed', 'not_started'])
    assert.deepEqual([await committed(), await failures()], [[1, 1, 0], [['m1', 1]]])
  })

  test('lets no connection come about within the time-out of a subscription: nothing is counted', async () => {
    const { service, publish, failures, committed } = await open({ settings: { timeoutSeconds: 1, retryCount: 0 } })
    await publish(bodies(2))
    const sender = openSender({ resolve: () => new Promise(() => undefined) })
    const { unavailable, ...report } = await pushOf(service, { sender }).run('http://hooks.example.com/')
    assert.deepEqual(report, { handled: 0, failed: 0, isDrained: false })
    assert.equal(unavailable?.error, 'it took more than 900 ms')
    assert.deepEqual([await failures(), await committed()], [[], [0, 0]])
  })

  test('once does not make a later failure count twice: an attempt counts when a handler starts', async () => {
    const { service, publish, failures, later } = await open({ queues: 1, settings: { retryCount: 2 } })
    await publish(['poison'])
    const replies = [503, 500, 429, 503, 500, 503, 500, 503]
    const target = await serveTarget(() => replies.shift() ?? assert.fail('it was handed on once more'))
    const { run } = pushOf(service)
    for (let time = 0; time < 12; time++) {
      await run(target.url)
      later()
    }
    const counts = target.got.map(({ msgs }) => msgs[0]?.retryCount)
    assert.deepEqual(counts, [0, 0, 1, 1, 1, 2, 2])
    assert.deepEqual(
      await failures(),
      [1, 2, 3].map(count => ['poison', count]),
    )
  })

  test('keeps no other one waiting, nor one that hangs', async () => {
    const { service, publish, queueIds } = await open({ queues: 1 })
    await publish(bodies(3))
    await service.call('createGroup', { name: 'other', mode: 'claimed' })
    await service.call('subscribe', {}, { groupName: 'other', topicName: 'orders' })
    await publish(bodies(3), queueIds[0])
    const events: string[] = []
    const hanging = await serveTarget(() => {
      events.push('hanging begins')
      return () => undefined
    })
    const good = await serveTarget(() => done)
    const sender = openSender()
    const { run } = pushOf(service, { sender })
    const first = run(hanging.url).then(report => {
      events.push('hanging ends')
      return report
    })
    await until(() => events.length === 1)
    const owner = { groupName: 'other' }
    const report = await run('', { target: targetAt(good.url, { owner }) })
    events.push('good ends')
    sender.close()
    assert.deepEqual([report.handled, report.isDrained], [3, true])
    await first
    assert.deepEqual(events, ['hanging begins', 'good ends', 'hanging ends'])
  })

  test('is told of without its secret, and without a word of a message', async t => {
    const { service, publish } = await open({ queues: 2, settings: { retryCount: 0, consumerBatchSize: 2 } })
    const logged: unknown[] = []
    for (const name of ['error', 'warn', 'log'] as const)
      t.mock.method(console, name, (...line: unknown[]) => logged.push(line))
    const replies: Reply[] = [
      503,
      500,
      { suc: 's3cret' },
      outgoing => outgoing.end('s3cret'),
      { suc: true, failIds: ['s3cret'] },
    ]
    const urls = ['http://127.0.0.1:1/', 'http://169.254.169.254/s3cret?s3cret', 'http://s3cret@127.0.0.1/']
    const target = await serveTarget(() => replies.shift() ?? 500)
    for (let time = 0; time < 6; time++) {
      await publish(['s3cret body', 's3cret body'])
      urls.push(target.url)
    }
    for (const url of urls) {
      const { run, posts } = pushOf(service)
      const report = await run(url)
      const told = posts.map(({ answer, ...post }) => post)
      assert.doesNotMatch(JSON.stringify([report, told]), /s3cret|whsec_/)
    }
    assert.doesNotMatch(JSON.stringify(logged), /s3cret|whsec_/)
    assert.equal(replies.length, 0)
  })
})
