import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ConsumerOptions } from '../../sdk/src/consumer-options.ts'
import type { HandlerContext, Message } from '../../sdk/src/message.ts'
import { bodies, setUp, upTo } from './consumer-setup.ts'
import type { Settings } from './fake-groups.ts'
import { seededRandom, settle } from './manual-clock.ts'

const manual: Partial<ConsumerOptions> = { commit: 'manual' }

/** A consumer that commits by hand, and what it was given. */
async function begin(settings: Partial<Settings> = {}, options: Partial<ConsumerOptions> = {}, hasFailTopics = false) {
  const world = setUp({ queues: 1, settings: { consumerBatchSize: 2, ...settings }, hasFailTopics })
  const seen: string[] = []
  const contexts: HandlerContext[] = []
  const handler = (messages: readonly Message[], context: HandlerContext) => {
    for (const { queueId, offset } of messages) seen.push(`${queueId}:${offset}`)
    contexts.push(context)
  }
  const made = world.consumer(handler, { ...manual, ...options })
  await made.start()
  return { ...world, seen, contexts, made, handler }
}

const rejectsWith = (commit: Promise<void> | undefined, code: string) =>
  assert.rejects(commit ?? assert.fail(), { code })

const unreachableFailTopic: ReturnType<typeof setUp>['service']['onRequest'] = operation =>
  operation === 'publishAndUpdateResultFailMsg' ? { kind: 'unreachable' } : undefined

const failedBodies = (log: ReturnType<typeof setUp>['log']) =>
  log.stored('billing_orders_fail').map(({ message }) => message.body)

suite('committing by hand', () => {
  test('commits what it is told and nothing else: after a restart the rest is handed out again', async () => {
    const { clock, log, seen, contexts, made, committed, consumer, handler, service } = await begin()
    log.put(1, bodies(6))
    await clock.advance(60_000)
    assert.deepEqual([seen, committed(), service.count('commitOffset')], [upTo(1, 6), [0], 0])
    const { commit } = contexts[0] ?? assert.fail()
    await commit(3)
    assert.deepEqual(committed(), [3])
    await clock.advance(60_000)
    assert.equal(service.count('commitOffset'), 1)
    const stopped = made.stop()
    await clock.advance(10_000)
    await stopped
    assert.deepEqual(committed(), [3])
    seen.length = 0
    const next = consumer(handler, manual)
    await next.start()
    await clock.advance(1_000)
    assert.deepEqual(seen, upTo(1, 6, 4))
    await Promise.all([contexts.at(-1)?.commit(6), next.stop(), clock.advance(1_000)])
    assert.deepEqual(committed(), [6])
  })

  test('resolves when it is recorded, however often the service must be asked', async () => {
    const { clock, log, contexts, made, service, committed } = await begin()
    log.put(1, bodies(2))
    await clock.advance(1_000)
    let asked = 0
    service.onRequest = operation =>
      operation === 'commitOffset' && asked++ < 3 ? { kind: asked % 2 ? 'lose_answer' : 'lose_request' } : undefined
    let isRecorded = false
    const commit = contexts[0]?.commit(2).then(() => {
      isRecorded = true
    })
    await settle()
    assert.equal(isRecorded, false)
    await clock.advance(60_000)
    await commit
    assert.deepEqual([committed(), made.count('request_failed')], [[2], 3])
    await contexts[0]?.commit(2)
    await contexts[0]?.commit(1)
    await made.stop()
  })

  test('rejects what was not handed out, and a consumer that commits by itself', async () => {
    const { clock, log, contexts, made } = await begin()
    log.put(1, bodies(3))
    await clock.advance(1_000)
    for (const offset of [4, -1, 1.5, Number.NaN, '1' as unknown as number]) {
      await rejectsWith(contexts[0]?.commit(offset), 'invalid_commit')
    }
    for (const failed of [[2], [7], 'x' as unknown as number[]]) {
      await rejectsWith(contexts[0]?.commit(1, { failed }), 'invalid_commit')
    }
    await rejectsWith(contexts[0]?.commit(2, { failed: [1] }), 'invalid_commit')
    await Promise.all([contexts[0]?.commit(3), settle()])
    await made.stop()

    const auto = await begin({}, { commit: 'auto' })
    auto.log.put(1, bodies(1))
    await auto.clock.advance(1_000)
    await rejectsWith(auto.contexts[0]?.commit(1), 'invalid_commit')
    await auto.made.stop()
  })

  test('what has failed goes to the fail topic first, and is not committed before', async () => {
    const { clock, log, contexts, made, service, committed } = await begin({}, {}, true)
    log.put(1, bodies(4))
    await clock.advance(1_000)
    service.onRequest = unreachableFailTopic
    const commit = contexts[1]?.commit(4, { failed: [2, 3, 2] })
    await clock.advance(60_000)
    assert.deepEqual(committed(), [1])
    service.onRequest = () => undefined
    await clock.advance(60_000)
    await commit
    assert.deepEqual(committed(), [4])
    assert.deepEqual(
      log.stored('billing_orders_fail').map(({ message }) => [message.body, message.retryCount]),
      [
        ['m1', 1],
        ['m2', 1],
      ],
    )
    const stopped = made.stop()
    await clock.advance(10_000)
    await stopped
  })

  test('a later commit records nothing past a failure that is not stored, and a stop has all of that handed out again', async () => {
    const { clock, log, seen, contexts, made, service, committed, consumer, handler } = await begin({}, {}, true)
    log.put(1, bodies(6))
    await clock.advance(1_000)
    service.onRequest = unreachableFailTopic
    const { commit } = contexts[0] ?? assert.fail()
    const commits = [rejectsWith(commit(3, { failed: [3] }), 'closed'), rejectsWith(commit(6), 'closed')]
    await clock.advance(60_000)
    assert.deepEqual(committed(), [2])
    const stopped = made.stop()
    await clock.advance(60_000)
    await Promise.all([...commits, stopped])
    assert.deepEqual([committed(), log.stored('billing_orders_fail')], [[2], []])

    service.onRequest = () => undefined
    seen.length = 0
    const next = consumer(handler, manual)
    await next.start()
    await clock.advance(1_000)
    assert.deepEqual(seen, upTo(1, 6, 3))
    await Promise.all([contexts.at(-1)?.commit(6), next.stop(), clock.advance(1_000)])
    assert.deepEqual(committed(), [6])
  })

  test('a stop waits for failures under way, and what was committed past them is recorded with them', async () => {
    const { clock, log, contexts, made, service, committed } = await begin({}, {}, true)
    log.put(1, bodies(6))
    await clock.advance(1_000)
    service.onRequest = unreachableFailTopic
    const { commit } = contexts[0] ?? assert.fail()
    const commits = [commit(3, { failed: [3] }), commit(6, { failed: [3] }), commit(3, { failed: [3] })]
    const stopped = made.stop()
    await clock.advance(500)
    assert.deepEqual(committed(), [2])
    service.onRequest = () => undefined
    await clock.advance(60_000)
    await Promise.all([...commits, stopped])
    assert.deepEqual([committed(), failedBodies(log)], [[6], ['m2']])
  })

  test('what is on its way to the fail topic is not handed out again by its call', async () => {
    const { clock, log, consumer, committed, service } = setUp({
      queues: 1,
      settings: { consumerBatchSize: 2 },
      hasFailTopics: true,
    })
    const calls: number[][] = []
    const commits: Promise<void>[] = []
    const { start, stop } = consumer((messages, { commit }) => {
      calls.push(messages.map(({ offset }) => offset))
      if (calls.length > 1) return
      commits.push(commit(1, { failed: [1] }))
      throw new Error('no')
    }, manual)
    service.onRequest = unreachableFailTopic
    log.put(1, bodies(2))
    await start()
    await clock.advance(20_000)
    assert.deepEqual(calls, [[1, 2], [2]])
    service.onRequest = () => undefined
    await clock.advance(60_000)
    await Promise.all(commits)
    assert.deepEqual([committed(), failedBodies(log)], [[1], ['m0']])
    const stopped = stop()
    await clock.advance(60_000)
    await stopped
  })

  test('whatever is committed in whatever order, what is recorded is done, or in the fail topic once', async () => {
    for (let seed = 1; seed <= 25; seed++) {
      const random = seededRandom(seed)
      const below = (end: number) => Math.floor(random() * end)
      const { clock, log, contexts, made, service, committed } = await begin({}, {}, true)
      const count = 6 + below(10)
      log.put(1, bodies(count))
      await clock.advance(1_000)
      service.onRequest = operation =>
        operation === 'publishAndUpdateResultFailMsg' && random() < 0.7 ? { kind: 'lose_request' } : undefined
      const fates = new Map<number, boolean>()
      const commits: Promise<number>[] = []
      for (let turn = 0; turn < 8; turn++) {
        const offset = 1 + below(count)
        const failed: number[] = []
        for (let one = 1; one <= offset; one++) {
          const isFailed = !fates.has(one) && random() < 0.2
          if (!fates.has(one)) fates.set(one, isFailed)
          if (isFailed) failed.push(one)
        }
        const commit = contexts[0]?.commit(offset, { failed }) ?? assert.fail()
        commits.push(
          commit.then(
            () => offset,
            () => 0,
          ),
        )
        if (random() < 0.5) await clock.advance(below(500))
      }
      const isGivenUp = random() < 0.5
      const stopped = made.stop()
      if (!isGivenUp) service.onRequest = () => undefined
      await clock.advance(120_000)
      await stopped
      const [recorded = 0] = committed()
      const storedBodies = failedBodies(log)
      assert.equal(new Set(storedBodies).size, storedBodies.length, `seed ${seed}: stored twice`)
      for (let offset = 1; offset <= recorded; offset++) {
        const isStored = storedBodies.includes(`m${offset - 1}`)
        assert.equal(isStored, fates.get(offset), `seed ${seed}: offset ${offset}, recorded ${recorded}`)
      }
      for (const offset of await Promise.all(commits)) assert.ok(offset <= recorded, `seed ${seed}: resolved too early`)
    }
  })

  test('rejects as fenced where the queue has another owner by now', async () => {
    const { clock, log, contexts, made, groups } = await begin()
    log.put(1, bodies(2))
    await clock.advance(1_000)
    groups.seize('billing', 1, 99)
    await rejectsWith(contexts[0]?.commit(2), 'fenced')
    await rejectsWith(contexts[0]?.commit(1), 'fenced')
    assert.equal(made.count('fenced'), 1)
    await made.stop()
  })

  test('a stop waits for what was handed out to be committed, and rejects what it cannot record any more', async () => {
    const { clock, log, contexts, made, committed, service } = await begin()
    log.put(1, bodies(2))
    await clock.advance(1_000)
    let isStopped = false
    const stopped = made.stop().then(() => {
      isStopped = true
    })
    await clock.advance(2_000)
    assert.equal(isStopped, false)
    service.onRequest = operation => (operation === 'commitOffset' ? { kind: 'unreachable' } : undefined)
    const commit = rejectsWith(contexts[0]?.commit(2), 'closed')
    await clock.advance(60_000)
    await Promise.all([commit, stopped])
    assert.deepEqual([committed(), clock.sleeping], [[0], 0])
    await rejectsWith(contexts[0]?.commit(2), 'closed')
  })

  test('a call that fails is repeated in place, and no more when it has been declared done', async () => {
    const { clock, log, consumer, committed } = setUp({
      queues: 1,
      settings: { threadSize: 2, consumerBatchSize: 1 },
      hasFailTopics: true,
    })
    let calls = 0
    const contexts: HandlerContext[] = []
    const { start, stop } = consumer(([message], context) => {
      contexts.push(context)
      if (message?.offset !== 1) return
      calls++
      throw new Error('no')
    }, manual)
    await start()
    log.put(1, bodies(2))
    await clock.advance(1_000)
    const before = calls
    assert.ok(before > 2)
    assert.deepEqual(log.stored('billing_orders_fail'), [])
    await contexts.at(-1)?.commit(2)
    await clock.advance(60_000)
    assert.deepEqual([calls, committed()], [before, [2]])
    await stop()
  })

  test('what is passed over is done as soon as everything before it is, and stalls nothing', async () => {
    const { clock, log, contexts, made, committed } = await begin({ tag: 'a' }, { maxBufferedMessages: 50 })
    log.put(1, [{ body: 'x', tag: 'a' }])
    for (let batch = 0; batch < 20; batch++) log.put(1, bodies(10))
    log.put(1, [{ body: 'x', tag: 'a' }])
    await clock.advance(10_000)
    assert.deepEqual([contexts.length, committed()], [1, [0]])
    await Promise.all([contexts[0]?.commit(1), clock.advance(10_000)])
    assert.deepEqual([contexts.length, committed()], [2, [201]])
    await Promise.all([contexts[1]?.commit(202), clock.advance(10_000)])
    assert.deepEqual(committed(), [202])
    await made.stop()
  })

  test('what is handed out and not committed is bounded, in messages and in bytes', async () => {
    for (const [options, expected] of [
      [{ maxBufferedMessages: 20 }, 20],
      [{ maxBufferedBytes: 10_000 }, 10],
    ] as const) {
      const { clock, log, seen, contexts, made, committed } = await begin({ consumerBatchSize: 1 }, options)
      for (let batch = 0; batch < 100; batch++) log.put(1, ['x'.repeat(900)])
      await clock.advance(10_000)
      assert.equal(seen.length, expected)
      await contexts.at(-1)?.commit(expected)
      await clock.advance(10_000)
      assert.deepEqual([seen.length, committed()], [2 * expected, [expected]])
      const stopped = made.stop()
      await clock.advance(10_000)
      await stopped
    }
  })
})
