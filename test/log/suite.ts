import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Core } from '../../core/core.ts'
import { checkpointTopic } from '../../core/log/checkpoint.ts'
import type { Store } from '../../core/store.ts'
import { checkHistory } from '../checker/check.ts'
import { explain } from '../checker/violation.ts'
import { type ContractStore, groupOf, offsetOf, subscriptionOf } from '../store/contract.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { createContainer, hourMs, makeTopic, placeOf, readAfter, readAll, send } from './containers.ts'
import { runWriters } from './writers.ts'

export type LogSuiteOptions = {
  skip?: string
  /** What a client of the store sees; the store itself where nothing stands between. */
  through?: (store: Store, n: number) => Store
  /** A slower engine gets less to do. */
  publishes?: number
  /** Only the writers, where it is what they meet that is tried. */
  writersOnly?: boolean
}

/** What the log promises, over a store: P1 to P3 and P8, judged from outside by the history checker. */
export function logSuite(name: string, open: () => Promise<ContractStore>, options: LogSuiteOptions = {}): void {
  describe(`the log over ${name}`, { skip: options.skip ?? false }, () => {
    let opened: ContractStore
    let store: Store
    before(async () => {
      opened = await open()
      store = opened.store
    })
    after(() => opened?.close())

    for (const writers of [8, 32]) {
      for (const keyed of [false, true]) {
        test(`holds with ${writers} writers of ${keyed ? 'keyed' : 'unkeyed'} messages on one queue and a reader behind them`, async () => {
          const topic = await makeTopic(store, 1)
          const through = options.through ?? (inner => inner)
          const containers = new Map<number, Core>()
          const container = (n: number) => {
            const known = containers.get(n) ?? createContainer(through(store, n), { seed: n + 1 })
            containers.set(n, known)
            return known
          }
          const publishes = Math.ceil(((options.publishes ?? 20) * 8) / writers)
          const run = {
            topicName: topic.name,
            queueIds: topic.queueIds,
            container,
            writers,
            publishes,
            maxMessages: 5,
            keyed,
          }
          assert.equal(explain(checkHistory(await runWriters(run))), '')
        })
      }
    }

    if (options.writersOnly) return

    test('spreads concurrent writers of unkeyed messages over the queues, and keeps those of a key in one', async () => {
      const topic = await makeTopic(store, 4)
      const containers = Array.from({ length: 4 }, (_, n) => createContainer(store, { seed: 100 + n }))
      const crowded = { queueId: topic.queueIds[0] ?? 0, settledUntilMs: Number.MAX_SAFE_INTEGER }
      for (const container of containers) container.lastQueues.set(topic.name, crowded)
      const keyed: number[] = []
      for (let round = 0; round < 10; round++) {
        await Promise.all(containers.map((container, n) => send(container, topic.name, [`${round}/${n}`])))
        const sent = await Promise.all(
          containers.map((container, n) => send(container, topic.name, [`k/${round}/${n}`], { key: 'k' })),
        )
        keyed.push(...sent.map(response => placeOf(response).queueId))
      }
      const preferred = new Set(containers.map(container => container.lastQueues.get(topic.name)?.queueId))
      assert.ok(preferred.size > 1, `all writers stayed in queue ${[...preferred]}`)
      assert.equal(new Set(keyed).size, 1)
    })

    test('gives unkeyed messages to the queues in turn, where nobody is in the way', async () => {
      const topic = await makeTopic(store, 4)
      const container = createContainer(store)
      const used: number[] = []
      for (const value of ['1', '2', '3', '4']) used.push(placeOf(await send(container, topic.name, [value])).queueId)
      assert.equal(new Set(used).size, 4)
    })

    test('stores a publish once that is sent again from another container after its answer was lost', async () => {
      const topic = await makeTopic(store, 4)
      const [one, other] = [createContainer(store, { seed: 1 }), createContainer(store, { seed: 2 })]
      const publish = { publishId: 'lost-answer' }
      const first = placeOf(await send(one, topic.name, ['a', 'b'], publish))
      await send(one, topic.name, ['behind it'], { toQueue: first.queueId })
      const second = placeOf(await send(other, topic.name, ['a', 'b'], { ...publish, attempt: 2, attemptAgeMs: 50 }))
      assert.deepEqual(second, first)
      const values = await Promise.all(topic.queueIds.map(queueId => readAll(other, queueId)))
      assert.deepEqual(
        values.flat().map(message => message.value),
        ['a', 'b', 'behind it'],
      )
    })

    test('sends only what is missing when a publish over several queues is sent again', async () => {
      const topic = await makeTopic(store, 8)
      const container = createContainer(store)
      const keys = ['a', 'b', 'c', 'd', 'e', 'f']
      const msgs = keys.map(key => ({ key, body: `of ${key}` }))
      const { publish } = await import('../../core/client/publish.ts')
      const once = await publish(container, { topicName: topic.name, msgs, publishId: 'spread' })
      const twice = await publish(createContainer(store), {
        topicName: topic.name,
        msgs,
        publishId: 'spread',
        attempt: 2,
      })
      assert.ok(once.suc && twice.suc)
      assert.deepEqual(twice.offsets, once.offsets)
    })

    test('goes on behind the last message when the log was trimmed in part and out of order', async () => {
      const topic = await makeTopic(store, 1)
      const queueId = topic.queueIds[0] ?? 0
      for (const value of ['1', '2', '3', '4', '5']) await send(createContainer(store), topic.name, [value])
      await opened.deleteBatches(queueId, [1, 3])
      assert.deepEqual(placeOf(await send(createContainer(store), topic.name, ['6'])), { queueId, offset: 6 })
      const reader = createContainer(store)
      assert.deepEqual(await readAfter(reader, queueId, 0), { messages: [{ offset: 2, value: '2' }], skipped: 1 })
      const behindHole = await readAfter(reader, queueId, 2)
      assert.equal(behindHole.skipped, 1)
      assert.deepEqual(
        behindHole.messages.map(message => message.offset),
        [4, 5, 6],
      )
    })

    test('goes on behind the checkpoint when every batch is gone', async () => {
      const topic = await makeTopic(store, 1)
      const queueId = topic.queueIds[0] ?? 0
      await send(createContainer(store), topic.name, ['1', '2', '3'])
      await checkpointTopic(createContainer(store), topic.name)
      await opened.deleteBatches(queueId, [1])
      assert.deepEqual(placeOf(await send(createContainer(store), topic.name, ['4'])), { queueId, offset: 4 })
      assert.deepEqual(await readAfter(createContainer(store), queueId, 0), {
        messages: [{ offset: 4, value: '4' }],
        skipped: 3,
      })
    })

    test('goes on behind every committed offset when every batch and the checkpoint are gone', async () => {
      const topic = await makeTopic(store, 1)
      const queueId = topic.queueIds[0] ?? 0
      const groupName = `group-of-${topic.name}`
      await store.createGroup(groupOf(groupName))
      const queueOffsetId = await store.takeIds('queueOffset', 1)
      await store.addQueueOffset(offsetOf(groupName, queueOffsetId, { topicName: topic.name, queueId, offset: 41 }))
      await store.createSubscription(subscriptionOf(groupName, topic.name))
      assert.deepEqual(placeOf(await send(createContainer(store), topic.name, ['42'])), { queueId, offset: 42 })
    })

    test('does not trust a tail that TTL should have removed, since newer batches may be gone before it', async () => {
      const topic = await makeTopic(store, 1)
      const queueId = topic.queueIds[0] ?? 0
      const clock = createManualClock(Date.now())
      for (const value of ['1', '2', '3']) await send(createContainer(store, { clock }), topic.name, [value])
      await checkpointTopic(createContainer(store, { clock }), topic.name)
      clock.advance(26 * hourMs)
      await opened.deleteBatches(queueId, [2, 3])
      assert.deepEqual(placeOf(await send(createContainer(store, { clock }), topic.name, ['4'])), {
        queueId,
        offset: 4,
      })
    })

    test('treats batches past retention as gone, and says how many offsets were skipped', async () => {
      const topic = await makeTopic(store, 1)
      const queueId = topic.queueIds[0] ?? 0
      const clock = createManualClock(Date.now())
      const container = createContainer(store, { clock })
      for (let i = 0; i < 150; i++) await send(container, topic.name, [`old ${i}`])
      clock.advance(2 * hourMs)
      assert.deepEqual(await readAfter(container, queueId, 0), { messages: [], skipped: 0 })
      await send(container, topic.name, ['new'])
      const fresh = createContainer(store, { clock })
      for (const reader of [container, fresh]) {
        assert.deepEqual(await readAfter(reader, queueId, 0), {
          messages: [{ offset: 151, value: 'new' }],
          skipped: 150,
        })
      }
    })

    test('gives a reader in the middle of a batch the rest of it', async () => {
      const topic = await makeTopic(store, 1)
      const queueId = topic.queueIds[0] ?? 0
      await send(createContainer(store), topic.name, ['1', '2', '3'])
      await send(createContainer(store), topic.name, ['4'])
      const rest = await readAfter(createContainer(store), queueId, 2)
      assert.deepEqual(
        rest.messages.map(message => message.value),
        ['3', '4'],
      )
      assert.deepEqual((await readAfter(createContainer(store), queueId, 4)).messages, [])
    })

    test('cuts a publish that is too large for one item into batches that each fit', async () => {
      const topic = await makeTopic(store, 1)
      const queueId = topic.queueIds[0] ?? 0
      const noise = (n: number) =>
        Array.from({ length: 200_000 }, (_, i) =>
          String.fromCharCode(33 + ((i * i * 7919 + i * 104_729 + n * 31) % 94)),
        ).join('')
      const values = Array.from({ length: 8 }, (_, n) => noise(n))
      const response = await send(createContainer(store), topic.name, values, { publishId: 'large' })
      assert.ok(response.suc)
      const headers = await store.readHeaders({
        queueId,
        fromOffset: 1,
        direction: 'forward',
        limit: 100,
        consistent: true,
      })
      assert.ok(headers.length > 1)
      assert.deepEqual(
        await readAll(createContainer(store), queueId),
        values.map((value, i) => ({ offset: i + 1, value })),
      )
      const again = await send(createContainer(store), topic.name, values, { publishId: 'large', attempt: 2 })
      assert.deepEqual(again.offsets, response.offsets)
    })
  })
}
