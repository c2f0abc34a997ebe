import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Message } from '../../sdk/src/message.ts'
import { setUp } from './consumer-setup.ts'
import { seededRandom } from './manual-clock.ts'

const keyed = { ordering: 'key' as const }
const messages = (count: number, keyOf: (n: number) => string | undefined) =>
  Array.from({ length: count }, (_, n) => ({ body: `${n}`, key: keyOf(n) }))

/** Notes which keys are in work, and fails the test where one is twice. */
function watchKeys() {
  const running = new Set<string>()
  const handled = new Map<string, number[]>()
  return {
    handled,
    begin(all: readonly Message[]) {
      for (const { key = '', offset } of all) {
        if (key === '') continue
        assert.ok(!running.has(key), `two of ${key} at once`)
        running.add(key)
        handled.set(key, [...(handled.get(key) ?? []), offset])
      }
    },
    end(all: readonly Message[]) {
      for (const { key = '' } of all) running.delete(key)
    },
  }
}

suite('ordering by key', () => {
  test('a stop lets those be handled that wait for their key before others that are done, so that nothing comes twice', async () => {
    const { clock, consumer, log, committed } = setUp({ queues: 1, settings: { threadSize: 20 } })
    const seen: number[] = []
    const keys = watchKeys()
    const { start, stop } = consumer(
      async all => {
        keys.begin(all)
        seen.push(...all.map(({ offset }) => offset))
        await clock.sleep(all[0]?.key === 'hot' ? 20 : 1)
        keys.end(all)
      },
      { ...keyed, stopTimeoutMs: 10_000 },
    )
    await start()
    log.put(
      1,
      messages(400, n => (n % 4 === 0 ? 'hot' : `k${n}`)),
    )
    await clock.advance(600)
    const before = seen.length
    const stopped = stop()
    await clock.advance(10_000)
    await stopped
    assert.ok(before < seen.length, `${before} and ${seen.length}`)
    // All that was handled lies before what is committed, or nothing lies between.
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      Array.from({ length: seen.length }, (_, index) => index + 1),
    )
    assert.deepEqual(committed(), [seen.length])
  })

  test('messages of one key are handled one at a time and in order, whatever the concurrency, and each once', async () => {
    for (const consumerBatchSize of [1, 7]) {
      const { clock, consumer, log, committed } = setUp({ queues: 1, settings: { threadSize: 50, consumerBatchSize } })
      const random = seededRandom(consumerBatchSize)
      const keys = watchKeys()
      let most = 0
      const { start, stop, status } = consumer(async all => {
        keys.begin(all)
        most = Math.max(most, status().queues[0]?.running ?? 0)
        await clock.sleep(random() * 100)
        keys.end(all)
      }, keyed)
      await start()
      for (let batch = 0; batch < 10; batch++)
        log.put(
          1,
          messages(100, n => (n % 10 === 0 ? undefined : `k${n % 7}`)),
        )
      await clock.advance(60_000)
      assert.deepEqual(committed(), [1_000])
      for (const offsets of keys.handled.values())
        assert.deepEqual(
          offsets,
          offsets.toSorted((a, b) => a - b),
        )
      assert.equal([...keys.handled.values()].flat().length, 900)
      assert.ok(most > 5, `${most} at once`)
      await stop()
    }
  })

  test('one slow key of a hundred does not hold up the others', async () => {
    const { clock, consumer, log } = setUp({ queues: 1, settings: { threadSize: 5, consumerBatchSize: 1 } })
    const seen: (string | undefined)[] = []
    const { start, stop, status } = consumer(
      async ([message], { signal }) => {
        seen.push(message?.key)
        await clock.sleep(message?.key === 'k0' ? 3_600_000 : 1, signal)
      },
      { ...keyed, stopTimeoutMs: 0 },
    )
    await start()
    log.put(
      1,
      messages(1_000, n => `k${n % 100}`),
    )
    await clock.advance(10_000)
    assert.equal(seen.filter(key => key === 'k0').length, 1)
    assert.equal(seen.length, 991)
    assert.equal(status().queues[0]?.behindKeys, 9)
    const stopped = stop()
    await clock.advance(1)
    await stopped
  })

  for (const settings of [{}, { retryInPlace: true, retryCount: 4 }]) {
    const how = 'retryInPlace' in settings ? 'and the subscription wants it so' : 'since there is no fail topic'
    test(`a key waits while one of its messages is retried in place, ${how}; other keys go on`, async () => {
      const hasFailTopics = 'retryInPlace' in settings
      const { clock, consumer, log, committed } = setUp({
        queues: 1,
        settings: { threadSize: 3, consumerBatchSize: 5, ...settings },
        hasFailTopics,
      })
      let left = 2
      const done: string[] = []
      const { start, stop } = consumer(all => {
        const isFailing = ({ body }: Message) => body === '0' && left > 0
        const failed = all.filter(isFailing).map(({ offset }) => offset)
        for (const message of all) if (!isFailing(message)) done.push(`${message.key}${message.offset}`)
        if (failed.length > 0) left--
        return failed
      }, keyed)
      await start()
      log.put(
        1,
        messages(12, n => 'abc'[n % 3]),
      )
      await clock.advance(99)
      assert.deepEqual(done.toSorted(), ['b11', 'b2', 'b5', 'b8', 'c12', 'c3', 'c6', 'c9'])
      await clock.advance(5_000)
      assert.deepEqual(done.slice(8), ['a1', 'a4', 'a7', 'a10'])
      assert.deepEqual(committed(), [12])
      await stop()
    })
  }

  test('may be had for one topic alone', async () => {
    const { clock, log, groups, consumer } = setUp({ queues: 1 })
    const [other = 0] = log.createTopic('mails', 1)
    groups.createGroup('billing', ['orders', 'mails'], { threadSize: 5, consumerBatchSize: 1 })
    const running = new Map<string, number>()
    const most = new Map<string, number>()
    const handler = async (_: readonly Message[], { topicName }: { topicName: string }) => {
      running.set(topicName, (running.get(topicName) ?? 0) + 1)
      most.set(topicName, Math.max(most.get(topicName) ?? 0, running.get(topicName) ?? 0))
      await clock.sleep(10)
      running.set(topicName, (running.get(topicName) ?? 0) - 1)
    }
    const { start, stop } = consumer(handler, {
      topics: { orders: handler, mails: handler },
      ordering: { mails: 'key' },
    })
    await start()
    for (const queueId of [1, other])
      log.put(
        queueId,
        messages(20, () => 'k'),
      )
    await clock.advance(5_000)
    assert.deepEqual([...most].toSorted(), [
      ['mails', 1],
      ['orders', 5],
    ])
    await stop()
  })

  test('looks ahead as far as the buffer reaches', async () => {
    const { clock, consumer, log } = setUp({ queues: 1, settings: { threadSize: 5, consumerBatchSize: 1 } })
    const { start, stop, status } = consumer(() => new Promise(() => undefined), {
      ...keyed,
      maxBufferedMessages: 100,
      maxPullBytes: 1,
      stopTimeoutMs: 0,
    })
    await start()
    for (let batch = 0; batch < 100; batch++)
      log.put(
        1,
        messages(10, () => 'k'),
      )
    await clock.advance(60_000)
    const { running, behindKeys, buffered = 0 } = status().queues[0] ?? {}
    assert.deepEqual([running, behindKeys], [1, 99])
    assert.ok(buffered <= 110, `${buffered} buffered`)
    const stopped = stop()
    await clock.advance(1)
    await stopped
  })
})
