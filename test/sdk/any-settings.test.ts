import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ConsumerOptions } from '../../sdk/src/consumer-options.ts'
import type { Message, MessageHandler } from '../../sdk/src/message.ts'
import { setUp } from './consumer-setup.ts'
import type { Settings } from './fake-groups.ts'
import { seededRandom } from './manual-clock.ts'

/** Queues 1 and 2 are of `orders`, 3 of its fail topic. */
const queueIds = [1, 2, 3]
const retryCount = 3
const tags = ['a', 'b', '']

function draw(seed: number) {
  const random = seededRandom(seed)
  const pick = <T>(...values: T[]) => values[Math.floor(random() * values.length)] as T
  const drawSettings = (): Partial<Settings> => ({
    threadSize: pick(1, 2, 5, 50),
    consumerBatchSize: pick(1, 3, 100),
    tag: pick('', '', 'a', 'a,b'),
    delayProcessTime: pick(0, 0, 5),
    timeout: pick(0, 0, 2),
    retryDelay: pick(0, 1, 10),
    retryBackoffRate: pick(1, 2),
    maxRetryDelay: 20,
    stopFlag: pick(0, 0, 0, 1),
    traceFlag: pick(0, 1),
  })
  const options: Partial<ConsumerOptions> = {
    ordering: pick('queue', 'key'),
    maxBufferedMessages: pick(3, 20, 10_000),
    maxPullBytes: pick(1, 1_000, 1_000_000),
    syncCommit: pick(true, false),
    revokeTimeoutMs: 60_000,
    stopTimeoutMs: 60_000,
    listeners: pick<ConsumerOptions['listeners']>(
      {},
      { filter: ({ body }) => !body.endsWith('7') },
      { preHandle: () => random() < 0.7, postHandle: () => assert.fail() },
    ),
  }
  return {
    random,
    pick,
    drawSettings,
    options,
    retryInPlace: pick(true, false),
    hasFailTopics: pick(true, true, false),
  }
}

suite('whatever the settings, and however they change while it runs', () => {
  for (let seed = 1; seed <= 12; seed++) {
    test(`each message is handled, passed over or dead; nothing twice, or beyond its bounds (seed ${seed})`, async () => {
      const { random, pick, drawSettings, options, retryInPlace, hasFailTopics } = draw(seed)
      const settings = { ...drawSettings(), retryCount, retryInPlace, maxPullTime: 1 }
      const { clock, consumer, log, groups, service } = setUp({ queues: 2, settings, hasFailTopics })
      const ofQueues = hasFailTopics ? queueIds : [1, 2]
      /** What a handler sees that must not be; what it throws would only fail the call. */
      const defects: string[] = []
      const executions = new Map<string, number>()
      const runningKeys = new Set<string>()
      const running = new Map<number, number>()
      const done = new Set<string>()
      let mostThreads = settings.threadSize ?? 1

      const handler: MessageHandler = async (messages, { queueId, signal }) => {
        running.set(queueId, (running.get(queueId) ?? 0) + 1)
        if ((running.get(queueId) ?? 0) > mostThreads) defects.push('more calls than threadSize')
        const isKeyed = options.ordering === 'key'
        const keys = messages.map(({ key, queueId: of }) => `${of} ${key}`)
        for (const [index, message] of messages.entries()) {
          const name = `${queueId}:${message.offset}`
          if (done.has(name)) defects.push(`${name} is handled though it was done`)
          executions.set(name, (executions.get(name) ?? 0) + 1)
          if (!isKeyed || message.key === undefined) continue
          if (runningKeys.has(keys[index] ?? '')) defects.push(`two of ${keys[index]} at once`)
          runningKeys.add(keys[index] ?? '')
        }
        await clock.sleep(random() < 0.05 ? 3_000 : random() * 300, signal)
        running.set(queueId, (running.get(queueId) ?? 0) - 1)
        for (const key of keys) runningKeys.delete(key)
        if (signal.aborted) return
        const isBad = ({ body }: Message) => body.startsWith('poison') || random() < 0.1
        const failed = messages.filter(isBad).map(({ offset }) => offset)
        for (const { offset } of messages) if (!failed.includes(offset)) done.add(`${queueId}:${offset}`)
        if (failed.length === messages.length && random() < 0.5) throw undefined
        return failed
      }
      const made = consumer(handler, options)
      await made.start()
      for (let step = 0; step < 60; step++) {
        const queueId = pick(1, 2)
        if (step < 40) {
          const count = 1 + Math.floor(random() * 20)
          const key = () => (random() < 0.3 ? undefined : `k${Math.floor(random() * 5)}`)
          const poison = hasFailTopics && random() < 0.3 ? ['poison'] : []
          const body = () => `${pick(...poison, 'm')}${step}`
          log.put(
            queueId,
            Array.from({ length: count }, () => ({ body: body(), key: key(), tag: pick(...tags) })),
          )
        }
        if (random() < 0.2) {
          const changed = drawSettings()
          mostThreads = Math.max(mostThreads, changed.threadSize ?? 1)
          groups.changeSettings('billing', changed)
        }
        if (random() < 0.1) made.pause({ queueId: pick(1, 2, 3) })
        if (random() < 0.2) made.resume()
        if (random() < 0.3) made.hint([queueId, 99])
        service.onRequest = () =>
          random() < 0.05 ? { kind: pick('lose_request', 'lose_answer', 'unreachable') } : undefined
        await clock.advance(random() * 4_000)
      }
      service.onRequest = () => undefined
      made.resume()
      groups.changeSettings('billing', { stopFlag: 0, timeout: 0 })
      const ends = () => ofQueues.map(queueId => (log.queues.get(queueId)?.nextOffset ?? 1) - 1)
      const committed = () => ofQueues.map(queueId => groups.committed('billing', queueId))
      for (let round = 0; round < 300 && committed().join() !== ends().join(); round++) await clock.advance(10_000)
      assert.deepEqual([committed(), defects], [ends(), []])
      assert.ok(done.size > 0)
      for (const [name, count] of executions) {
        if (hasFailTopics && !retryInPlace) assert.equal(count, 1, `${name} is retried in the fail topic alone`)
      }
      for (const { message } of log.stored('billing_orders_fail')) {
        assert.ok((message.retryCount ?? 0) <= retryCount)
      }
      const stopped = made.stop()
      await clock.advance(60_000)
      await stopped
      assert.equal(clock.sleeping, 0)
      assert.equal(made.count('fenced'), 0)
    })
  }
})
