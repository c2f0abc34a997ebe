import assert from 'node:assert/strict'
import { afterEach, suite, test } from 'node:test'
import { outcomeOfWebhook } from '../../functions/edge/push/outcome.ts'
import type { Message } from '../../sdk/src/index.ts'
import { bodies, done, pushOf, type Reply, serveTarget, setUp } from './push-setup.ts'

/** What is no answer to a call of the messages 1 to 4, though its status is 200. */
const malformed: Record<string, object | string> = {
  'no JSON': 'thanks',
  nothing: '',
  null: 'null',
  'a number': '7',
  'a text': '"suc"',
  'a list': '[{"suc":true}]',
  'no suc': '{}',
  'no suc, but ids': '{"failIds":[]}',
  'suc as a text': '{"suc":"true","failIds":[]}',
  'suc as a number': '{"suc":1}',
  'a part of an answer': '{"suc":true,"failIds":[1',
  'two answers': '{"suc":true}{"suc":true}',
  'ids in an object': '{"suc":true,"failIds":{"1":true}}',
  'ids as a number': '{"suc":true,"failIds":1}',
  'an id as a text': '{"suc":true,"failIds":["1"]}',
  'an id that is no whole number': '{"suc":true,"failIds":[1.5]}',
  'an id that is null': '{"suc":true,"failIds":[null]}',
  'an id of no message': '{"suc":true,"failIds":[5]}',
  'the id 0': '{"suc":true,"failIds":[0]}',
  'an id twice': '{"suc":true,"failIds":[1,1]}',
  '100,000 ids': { suc: true, failIds: Array.from({ length: 100_000 }, (_, index) => index + 1) },
  'a prototype': '{"__proto__":{"suc":true}}',
}

const answered = (body: string, status = 200) =>
  outcomeOfWebhook(
    { outcome: 'answered', status, body, isCut: false },
    [1, 2, 3, 4].map(offset => ({ offset }) as Message),
  )

suite('an answer', () => {
  for (const [what, body] of Object.entries(malformed)) {
    test(`with ${what} means that all have failed`, () => {
      assert.equal(answered(typeof body === 'string' ? body : JSON.stringify(body)).outcome, 'failed')
    })
  }

  test('says which have failed, and where it names none, all are done', () => {
    const all = { outcome: 'done', failIds: [] }
    for (const body of ['{"suc":true}', '{"suc":true,"failIds":null}', ' {"suc":true,"failIds":[],"msg":"ok"}\n'])
      assert.deepEqual(answered(body), all)
    assert.deepEqual(answered('{"failIds":[4,2],"suc":true}'), { outcome: 'done', failIds: [4, 2] })
    assert.deepEqual(answered('{"suc":true,"failIds":[1,2,3,4]}', 201), { outcome: 'done', failIds: [1, 2, 3, 4] })
  })

  test('is told without a word of what it says', () => {
    for (const body of [
      's3cret',
      '{"suc":"s3cret"}',
      '{"suc":true,"failIds":["s3cret"]}',
      '{"suc":false,"msg":"s3cret"}',
    ])
      assert.doesNotMatch(JSON.stringify(answered(body)), /s3cret/)
  })
})

suite('in a push', () => {
  let scene: Awaited<ReturnType<typeof setUp>>
  afterEach(() => scene.service.close())

  const replies: [what: string, reply: Reply, failed: number[]][] = [
    ['suc and the ids of two', { suc: true, failIds: [2, 3] }, [2, 3]],
    ['suc: false', { suc: false, failIds: [] }, [1, 2, 3, 4]],
    ['suc: false and some ids', { suc: false, failIds: [1] }, [1, 2, 3, 4]],
    ['no suc', { failIds: [] }, [1, 2, 3, 4]],
    ['an unknown id', { suc: true, failIds: [1, 99] }, [1, 2, 3, 4]],
    ['an id twice', { suc: true, failIds: [1, 1] }, [1, 2, 3, 4]],
    ['204', 204, [1, 2, 3, 4]],
    ['302', outgoing => outgoing.writeHead(302, { location: '/other' }).end(JSON.stringify(done)), [1, 2, 3, 4]],
    ['400', 400, [1, 2, 3, 4]],
    ['410', 410, [1, 2, 3, 4]],
    ['500', outgoing => outgoing.writeHead(500).end(JSON.stringify(done)), [1, 2, 3, 4]],
    ['502', 502, [1, 2, 3, 4]],
    ['10 MB', { ...done, more: 'x'.repeat(10 * 1024 * 1024) }, [1, 2, 3, 4]],
    ['a broken connection', outgoing => outgoing.destroy(), [1, 2, 3, 4]],
    [
      'half of an answer',
      outgoing => {
        outgoing.writeHead(200, { 'content-length': 100 }).write(JSON.stringify(done))
        setImmediate(() => outgoing.destroy())
      },
      [1, 2, 3, 4],
    ],
    [
      'an answer that is packed',
      outgoing => {
        outgoing
          .writeHead(200, { 'content-encoding': 'gzip' })
          .end(Buffer.from('H4sIAAAAAAAAA6tWKi5NVrIqKSpN1VFKS8zM8UwpVrKKjq0FAGFUoWAcAAAA', 'base64'))
      },
      [1, 2, 3, 4],
    ],
  ]
  for (const [what, reply, failed] of replies) {
    test(`${what} is an attempt for all, and a failure of ${failed}`, async () => {
      scene = await setUp({ queues: 1, settings: { consumerBatchSize: 4 } })
      const { service, publish, committed, failures } = scene
      await publish(bodies(4))
      const target = await serveTarget(() => reply)
      const { run, posts } = pushOf(service)
      const { nextDueAtMs, ...report } = await run(target.url)
      assert.deepEqual(report, { handled: 4 - failed.length, failed: failed.length, isDrained: true })
      assert.ok(nextDueAtMs !== undefined)
      assert.deepEqual([await failures(), await committed()], [failed.map(id => [`m${id}`, 1]), [4]])
      assert.deepEqual([target.got.length, posts.length], [1, 1])
      assert.equal(posts[0]?.outcome, failed.length === 2 ? 'done' : 'failed')
    })
  }

  test('no answer in time is an attempt, and a run that has little time for it ends in time', async () => {
    scene = await setUp({ queues: 1, settings: { consumerBatchSize: 4 } })
    const { service, publish, failures, claimants } = scene
    await publish(bodies(4))
    const target = await serveTarget(() => () => undefined)
    const { run, posts } = pushOf(service)
    const startedAtMs = performance.now()
    const report = await run(target.url, { timeLimitMs: 1_500 })
    assert.ok(performance.now() - startedAtMs < 1_500)
    assert.deepEqual([report.handled, report.failed], [0, 4])
    assert.deepEqual([await failures(), await claimants()], [bodies(4).map(body => [body, 1]), []])
    assert.match(posts[0]?.error ?? '', /^it took more than \d+ ms$/)
    assert.equal(target.open(), 0)
  })

  test('a call that takes longer than its subscription lets it is given up, and has failed', async () => {
    scene = await setUp({ queues: 1, settings: { timeoutSeconds: 1 } })
    const { service, publish, failures } = scene
    await publish(['slow', 'fast'])
    const target = await serveTarget(({ msgs }) => (msgs[0]?.body === 'slow' ? () => undefined : done))
    const { unavailable, ...report } = await pushOf(service).run(target.url)
    assert.deepEqual([report.handled, report.failed, unavailable], [1, 1, undefined])
    assert.deepEqual(await failures(), [['slow', 1]])
  })

  test('a poisoned message has its first attempt and as many retries as it may, and then stays in the fail topic', async () => {
    const retryCount = 3
    scene = await setUp({ queues: 1, settings: { retryCount, consumerBatchSize: 10 } })
    const { service, publish, committed, failures, later, lag } = scene
    await publish(['good', 'poison', 'better'])
    const target = await serveTarget(({ msgs }) => {
      return { suc: true, failIds: msgs.filter(({ body }) => body === 'poison').map(({ id }) => id) }
    })
    const { run } = pushOf(service)
    for (let time = 0; time < 8; time++) {
      await run(target.url)
      later()
    }
    assert.deepEqual(target.bodies(), ['good', 'poison', 'better', 'poison', 'poison', 'poison'])
    const retried = target.got.flatMap(({ msgs }) => msgs).filter(({ body }) => body === 'poison')
    assert.deepEqual(
      retried.map(message => [message.topicName, message.retryCount]),
      [0, 1, 2, 3].map(count => ['orders', count]),
    )
    assert.deepEqual(
      await failures(),
      [1, 2, 3, 4].map(count => ['poison', count]),
    )
    assert.deepEqual([await committed(), await lag()], [[3], 0])
    const { topics } = await service.call('listTopics', {})
    assert.ok(topics.every(name => !/fail.*fail/.test(name)))
  })

  test('a failure does not block its queue, and its retry comes later; in place it does, and its order is strict', async () => {
    for (const retryInPlace of [false, true]) {
      scene = await setUp({ queues: 1, settings: { retryInPlace, retryCount: 5 } })
      const { service, publish, later } = scene
      await publish(['first', 'second'])
      let tries = 0
      const target = await serveTarget(({ msgs }) => (msgs[0]?.body === 'first' && ++tries <= 2 ? 500 : done))
      const { run } = pushOf(service)
      for (let time = 0; time < 4; time++) {
        await run(target.url)
        later()
      }
      const inPlace = ['first', 'first', 'first', 'second']
      assert.deepEqual(target.bodies(), retryInPlace ? inPlace : ['first', 'second', 'first', 'first'])
      if (!retryInPlace) await service.close()
    }
  })
})
